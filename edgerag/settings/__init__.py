"""Settings as a user sees and changes them: what each means, where its value comes from, and how it is kept."""
