"""Twenty beginnings in the three kinds of text that the bundled pair was trained on."""

STORIES = [
    "Once upon a time",
    "Once upon a time, in a quiet village by the sea,",
    "One morning a small fox",
    "Long ago there lived a brave girl named",
    "The king was very sick.",
    "It was a cold night, and the wind",
    "Every day the old baker walked to the",
    '"Who will help me?" asked the',
]
NOVELS = [
    "It is a truth universally acknowledged, that",
    "Emma could not but",
    "Mr. Darcy looked at her with",
    "She was not at all surprised when",
    '"My dear," said Mrs. Bennet,',
    "The whole party were assembled, and",
    "Elinor, who had",
    "Captain Wentworth was",
]
RECORDS = [
    "Shopping list:",
    "Minutes of the Chess Club",
    "Name: Mia Ashby",
    "Monday:",
]
PROMPTS = STORIES + NOVELS + RECORDS
