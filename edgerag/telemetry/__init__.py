"""Where the time goes: measured here, shown by the user interfaces, never sent anywhere."""
