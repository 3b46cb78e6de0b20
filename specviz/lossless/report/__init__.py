"""What an audit found: verdict, words, HTML."""
