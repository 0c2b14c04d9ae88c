"""Schemas: typed items from dataclasses, pydantic models or JSON Schema; checked when written, read with tolerance."""
