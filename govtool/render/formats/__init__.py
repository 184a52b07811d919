"""Forms of answers for machines: JSON, SARIF, JUnit, GitHub's annotations, PROV-JSON."""
