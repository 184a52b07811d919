"""The session's JVM behind py4j: Scala, Hadoop, calls fetched together, classes compiled in it."""
