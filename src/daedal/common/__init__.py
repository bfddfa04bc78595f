"""What all rooms share: words of messages, tables of text, progress, the store of object code, time of first use."""
