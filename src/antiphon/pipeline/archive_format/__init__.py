"""Room archive_format."""
