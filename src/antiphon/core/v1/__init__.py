"""Generated from proto/antiphon/v1 by `make proto`; do not edit."""
