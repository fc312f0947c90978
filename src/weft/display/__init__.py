"""Programs to look at: short text, HTML, differences, drawings. Needs core/ and passes/ alone."""
