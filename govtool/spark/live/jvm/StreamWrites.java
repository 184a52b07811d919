import java.util.function.Consumer;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;

/**
 * Hands the ends of batches of streaming queries on, and nothing else: apply(Consumer) returns a listener.
 *
 * A QueryExecutionListener hears of executions that have a name, which these have not, and a listener in Python would be
 * called for each task. It keeps to Java 1.4 (no generics, no lambdas), which is what Janino compiles everywhere.
 */
public class StreamWrites implements java.util.function.Function {
  public Object apply(Object consumer) {
    return new Listener((Consumer) consumer);
  }

  static class Listener extends SparkListener {
    private final Consumer consumer;

    Listener(Consumer consumer) {
      this.consumer = consumer;
    }

    public void onOtherEvent(SparkListenerEvent event) {
      if (!(event instanceof SparkListenerSQLExecutionEnd)) {
        return;
      }
      Object execution = ((SparkListenerSQLExecutionEnd) event).qe();
      if (execution != null && execution.getClass().getSimpleName().equals("IncrementalExecution")) {
        consumer.accept(event);
      }
    }
  }
}
