class FileSystemReader:
    """Not here: checkpoints of torch's form are for tests that have torch."""
