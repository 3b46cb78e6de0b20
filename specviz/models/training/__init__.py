"""The recipe of the bundled models: corpus, tokenizer, training, measures and cards."""
