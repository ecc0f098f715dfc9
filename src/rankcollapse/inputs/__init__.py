"""What is measured on: documents, texts and token ids."""
