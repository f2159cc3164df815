"""Results for readers: the terminal here; other forms (HTML, JUnit, SARIF) in files of their own. Nothing computes."""
