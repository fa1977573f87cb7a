"""Why an answer is as it is, and where its time went: said and laid out, for the command line and the screens alike."""
