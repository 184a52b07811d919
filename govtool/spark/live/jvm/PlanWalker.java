import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.math.BigInteger;
import java.security.MessageDigest;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.CalendarInterval;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Writes an analyzed plan as one JSON text, with every field of every node.
 *
 * toJSON() leaves out evaluation modes, escape characters, ids of common expressions, values of literals that are not
 * text, rows of local relations and where files are. This reads the same nodes through scala.Product, which all of them
 * are, and calls nothing that computes. It is compiled inside the session by Janino, the compiler that Spark carries
 * for its own generated code; it keeps to Java 1.4 (no generics, no lambdas), which is what Janino compiles everywhere.
 *
 * {"types": [JSON of a type, ...], "nodes": [{"c": class, "p": is an operator, "t": type, "f": {field: value}}, ...],
 * "root": n}: nodes come after what they refer to, and are referred to as {"$": n}.
 *
 * All that an action needs is one call: apply(QueryExecution) writes {"settings": {name: value}, "exact": plan}, and
 * where the plan reads the clock, "now": {"from": ms, "to": ms, "values": {class: value}}: when it was optimized, which
 * is when Spark reads the clock, once a query, and what it read, where the optimized plan still shows it.
 * apply({QueryExecution, LogicalPlan}) writes another plan in place of the execution's own. apply(String) names the settings, separated by commas, once.
 */
public class PlanWalker implements java.util.function.Function {
  private static final int MAX_NODES = 200000;
  private static final java.util.regex.Pattern SECRET = java.util.regex.Pattern.compile(
      "secret|passw|passphrase|pwd|token|credential|private|api.?key|access[._]?key|account[._]?key|signature");

  private final StringBuilder nodes = new StringBuilder();
  private final StringBuilder types = new StringBuilder();
  private final Map known = new IdentityHashMap();
  private final Map typeNumbers = new HashMap();
  private final Map knownTypes = new IdentityHashMap();
  private final Map attributes = new HashMap();
  private final Map clocks = new HashMap();
  private boolean clock;
  private Map reads = new java.util.LinkedHashMap();
  private Object execution;
  private boolean searched;
  private String[] settings = new String[0];
  private int count;
  private long values;
  private long left;

  public Object apply(Object given) {
    if (given instanceof String) {
      settings = ((String) given).split(",");
      return null;
    }
    if (given instanceof LogicalPlan) {
      return new PlanWalker().write((LogicalPlan) given, 200000L);
    }
    LogicalPlan plan = null;
    if (given instanceof Object[]) {
      plan = (LogicalPlan) ((Object[]) given)[1];
      given = ((Object[]) given)[0];
    }
    org.apache.spark.sql.execution.QueryExecution execution =
        (org.apache.spark.sql.execution.QueryExecution) given;
    StringBuilder out = new StringBuilder("{\"settings\":{");
    effective(out, given);
    PlanWalker walker = new PlanWalker();
    walker.reads = reads;
    walker.execution = execution;
    out.append("},\"exact\":").append(walker.write(plan == null ? execution.analyzed() : plan, 200000L));
    if (walker.clock) {
      StringBuilder now = new StringBuilder();
      try {
        walker.now(now, execution);
        out.append(",\"now\":").append(now);
      } catch (Exception error) {
        return out.append("}").toString(); // the plan is read without it: the time is not known
      } catch (StackOverflowError error) {
        return out.append("}").toString();
      }
    }
    return out.append("}").toString();
  }

  // ---- the clock -----------------------------------------------------------------------------------------------

  private static boolean isClock(String kind) {
    return kind.equals("CurrentTimestamp") || kind.equals("Now") || kind.equals("CurrentDate")
        || kind.equals("LocalTimestamp");
  }

  private void note(Object tree) {
    if (isClock(tree.getClass().getSimpleName())) {
      clock = true;
    } else if (tree instanceof Alias && isClock(((Alias) tree).child().getClass().getSimpleName())) {
      clocks.put(new Long(((Alias) tree).exprId().id()), ((Alias) tree).child().getClass().getSimpleName());
    }
  }

  private void now(StringBuilder out, org.apache.spark.sql.execution.QueryExecution execution) throws Exception {
    LogicalPlan optimized = execution.optimizedPlan();
    Object phase = ((scala.collection.Map) call(call(execution, "tracker"), "phases")).apply("optimization");
    out.append("{\"from\":").append(call(phase, "startTimeMs")).append(",\"to\":").append(call(phase, "endTimeMs"));
    out.append(",\"values\":{");
    Map found = new HashMap();
    search(optimized, found);
    boolean started = false;
    for (java.util.Iterator items = found.entrySet().iterator(); items.hasNext(); ) {
      Map.Entry item = (Map.Entry) items.next();
      started = name(out, (String) item.getKey(), started);
      out.append(item.getValue());
    }
    out.append("}}");
  }

  /** Values of aliases that are the time in the analyzed plan. What is cached read the clock at another time. */
  private void search(Object tree, Map found) {
    if (tree.getClass().getSimpleName().equals("InMemoryRelation")) {
      throw new IllegalStateException("cached");
    }
    if (tree instanceof Alias && ((Alias) tree).child() instanceof Literal) {
      Object kind = clocks.get(new Long(((Alias) tree).exprId().id()));
      Object value = ((Literal) ((Alias) tree).child()).value();
      if (kind != null && value instanceof Number) {
        found.put(kind, value);
      }
    }
    search(((org.apache.spark.sql.catalyst.trees.TreeNode) tree).children(), found);
    if (tree instanceof LogicalPlan) {
      search(((LogicalPlan) tree).expressions(), found);
    }
  }

  private void search(scala.collection.Seq trees, Map found) {
    for (scala.collection.Iterator items = trees.iterator(); items.hasNext(); ) {
      search(items.next(), found);
    }
  }

  /** The effective values of the settings of an execution's session; the session's class moves between versions. */
  private void effective(StringBuilder out, Object execution) {
    org.apache.spark.sql.internal.SQLConf conf;
    try {
      conf = (org.apache.spark.sql.internal.SQLConf)
          call(call(call(execution, "sparkSession"), "sessionState"), "conf");
    } catch (Exception error) {
      throw new IllegalStateException("no settings");
    }
    boolean started = false;
    for (int i = 0; i < settings.length; i++) {
      try {
        String value = conf.getConfString(settings[i]);
        started = name(out, settings[i], started);
        text(out, value);
      } catch (Exception error) {
        continue; // not of this version, or neither set nor with a default
      }
    }
  }

  private String write(LogicalPlan plan, long budget) {
    left = budget;
    int root;
    try {
      root = node(plan);
    } catch (StackOverflowError error) {
      throw new IllegalStateException("plan-too-large");
    }
    return "{\"types\":[" + types + "],\"nodes\":[" + nodes + "],\"root\":" + root + "}";
  }

  // ---- nodes ---------------------------------------------------------------------------------------------------

  private int node(Object tree) {
    Object number = known.get(tree);
    if (number != null) {
      return ((Integer) number).intValue();
    }
    if (tree instanceof AttributeReference) {
      number = alike((AttributeReference) tree);
      if (number != null) {
        return ((Integer) number).intValue();
      }
    }
    if (count > MAX_NODES) {
      throw new IllegalStateException("plan-too-large");
    }
    note(tree);
    StringBuilder out = new StringBuilder();
    out.append("{\"c\":");
    text(out, tree.getClass().getName());
    if (tree instanceof LogicalPlan) {
      out.append(",\"p\":true");
      if (!(((scala.collection.Seq) ((LogicalPlan) tree).children()).nonEmpty())) {
        out.append(",\"o\":");
        outputs(out, (LogicalPlan) tree);
      }
    } else {
      out.append(",\"t\":");
      type(out, tree);
    }
    out.append(",\"f\":{");
    fields(out, tree);
    out.append("}}");
    if (count > 0) {
      nodes.append(",");
    }
    nodes.append(out);
    known.put(tree, new Integer(count));
    return count++;
  }

  /** The node of an equal attribute: wide plans hold hundreds of copies of each. */
  private Object alike(AttributeReference attribute) {
    Long id = new Long(attribute.exprId().id());
    Object[] known = (Object[]) attributes.get(id);
    if (known != null && known[0].equals(attribute)) {
      return known[1];
    }
    attributes.put(id, new Object[] {attribute, new Integer(count)}); // it has no nodes below it: it is the next one
    return null;
  }

  private void outputs(StringBuilder out, LogicalPlan plan) {
    try {
      value(out, plan.output());
    } catch (Exception error) {
      out.append("null");
    }
  }

  private void type(StringBuilder out, Object tree) {
    try {
      dataType(out, ((Expression) tree).dataType());
    } catch (Exception error) {
      out.append("null");
    }
  }

  private void dataType(StringBuilder out, DataType type) {
    Object number = knownTypes.get(type);
    if (number != null) {
      out.append(number);
      return;
    }
    String json = type.json();
    number = typeNumbers.get(json);
    if (number == null) {
      number = new Integer(typeNumbers.size());
      if (!typeNumbers.isEmpty()) {
        types.append(",");
      }
      types.append(json);
      typeNumbers.put(json, number);
    }
    knownTypes.put(type, number);
    out.append(number);
  }

  private void fields(StringBuilder out, Object tree) {
    if (tree instanceof AttributeReference) {
      AttributeReference attribute = (AttributeReference) tree;
      out.append("\"id\":").append(attribute.exprId().id()).append(",\"name\":");
      text(out, attribute.name());
      out.append(",\"nullable\":").append(attribute.nullable());
      metadata(out, attribute, true);
      return;
    }
    String kind = tree.getClass().getSimpleName();
    if (kind.equals("Literal")) {
      Literal literal = (Literal) tree;
      out.append("\"value\":");
      internal(out, literal.value(), literal.dataType());
      return;
    }
    boolean started = product(out, tree);
    if (tree instanceof NamedExpression) {
      started = name(out, "id", started);
      out.append(((NamedExpression) tree).exprId().id());
      metadata(out, (NamedExpression) tree, started);
    }
    if (tree instanceof Expression) {
      if (!((Expression) tree).deterministic()) {
        started = name(out, "$random", started);
        out.append("true");
      }
      if (tree instanceof org.apache.spark.sql.catalyst.expressions.RuntimeReplaceable) {
        started = name(out, "replacement", started);
        try {
          value(out, ((org.apache.spark.sql.catalyst.expressions.RuntimeReplaceable) tree).replacement());
        } catch (Exception error) {
          out.append("null");
        }
      }
    }
    if (kind.equals("LogicalRelation") || kind.equals("DataSourceV2Relation")) {
      lake(out, (LogicalPlan) tree, started);
    }
    if (kind.equals("LogicalRDD")) {
      rdd(out, (LogicalPlan) tree, started);
    }
    if (kind.equals("LocalRelation")) {
      name(out, "$rows", started);
      rows(out, (org.apache.spark.sql.catalyst.plans.logical.LocalRelation) tree);
    }
  }

  /** The number of the rows' RDD: a self-join gives a copy of the leaf other columns, but the same RDD. */
  private void rdd(StringBuilder out, LogicalPlan leaf, boolean started) {
    try {
      int id = ((org.apache.spark.rdd.RDD) call(leaf, "rdd")).id();
      name(out, "$rdd", started);
      out.append(id);
    } catch (Exception error) {
      return; // rows of an RDD that nobody knows
    }
  }

  private void metadata(StringBuilder out, NamedExpression tree, boolean started) {
    String json = "{}";
    try {
      json = tree.metadata().json();
    } catch (Exception error) {
      return; // not resolved
    }
    if (!json.equals("{}")) {
      name(out, "$metadata", started);
      text(out, json);
    }
  }

  private boolean name(StringBuilder out, String name, boolean started) {
    if (started) {
      out.append(",");
    }
    text(out, name);
    out.append(":");
    return true;
  }

  private boolean product(StringBuilder out, Object tree) {
    boolean started = false;
    if (tree instanceof scala.Product) {
      scala.Product product = (scala.Product) tree;
      for (int i = 0; i < product.productArity(); i++) {
        if (product.productElementName(i).equals("data") && tree.getClass().getSimpleName().equals("LocalRelation")) {
          continue;
        }
        started = name(out, product.productElementName(i), started);
        value(out, product.productElement(i));
      }
    }
    return started;
  }

  // ---- values of fields ----------------------------------------------------------------------------------------

  private void value(StringBuilder out, Object value) {
    if (value == null || value instanceof scala.None$) {
      out.append("null");
    } else if (value instanceof scala.Some) {
      value(out, ((scala.Some) value).value());
    } else if (value instanceof Expression || value instanceof LogicalPlan) {
      out.append("{\"$\":").append(node(value)).append("}");
    } else if (value instanceof Boolean || value instanceof Integer || value instanceof Long
        || value instanceof Short || value instanceof Byte) {
      out.append(value);
    } else if (value instanceof Double || value instanceof Float) {
      number(out, ((Number) value).doubleValue());
    } else if (value instanceof String || value instanceof Character || value instanceof UTF8String) {
      text(out, value.toString());
    } else if (value instanceof DataType) {
      out.append("{\"$type\":");
      dataType(out, (DataType) value);
      out.append("}");
    } else if (value instanceof ExprId) {
      out.append("{\"$id\":").append(((ExprId) value).id()).append("}");
    } else {
      structure(out, value);
    }
  }

  private void structure(StringBuilder out, Object value) {
    String name = value.getClass().getName();
    if (value instanceof scala.collection.Map) {
      map(out, (scala.collection.Map) value);
    } else if (value instanceof scala.collection.Iterable) {
      sequence(out, ((scala.collection.Iterable) value).iterator());
    } else if (name.startsWith("scala.Tuple")) {
      sequence(out, ((scala.Product) value).productIterator());
    } else if (name.startsWith("scala.Enumeration")) {
      out.append("{\"$enum\":");
      text(out, value.toString());
      out.append("}");
    } else if (value instanceof Enum) {
      out.append("{\"$enum\":");
      text(out, value.toString());
      out.append("}");
    } else if (value instanceof org.apache.hadoop.fs.Path || value instanceof java.net.URI) {
      text(out, value.toString());
    } else if (name.endsWith("FileFormat")) {
      out.append("{\"$format\":");
      text(out, value.toString());
      out.append("}");
    } else if (name.endsWith(".HadoopFsRelation")) {
      files(out, (org.apache.spark.sql.execution.datasources.HadoopFsRelation) value);
    } else if (name.endsWith(".SimplePythonFunction")) {
      python(out, value);
    } else if (value instanceof scala.Product && name.startsWith("org.apache.spark.sql.catalyst.")) {
      out.append("{\"$product\":");
      text(out, name);
      out.append(",\"f\":{");
      product(out, value);
      out.append("}}");
    } else {
      out.append("{\"$object\":");
      text(out, name);
      out.append("}");
    }
  }

  private void sequence(StringBuilder out, scala.collection.Iterator items) {
    out.append("[");
    boolean started = false;
    while (items.hasNext()) {
      if (started) {
        out.append(",");
      }
      started = true;
      value(out, items.next());
    }
    out.append("]");
  }

  /** Options and settings as pairs, without logins: a trace needs none. */
  private void map(StringBuilder out, scala.collection.Map values) {
    boolean database = false;
    for (scala.collection.Iterator items = values.iterator(); items.hasNext();) {
      Object item = ((scala.Tuple2) items.next())._2();
      database = database || item instanceof String && ((String) item).startsWith("jdbc:");
    }
    out.append("{\"$map\":[");
    boolean started = false;
    for (scala.collection.Iterator items = values.iterator(); items.hasNext();) {
      scala.Tuple2 item = (scala.Tuple2) items.next();
      String key = String.valueOf(item._1()).toLowerCase();
      boolean login = SECRET.matcher(key).find() || database && (key.equals("user") || key.equals("url"));
      out.append(started ? ",[" : "[");
      started = true;
      value(out, item._1());
      out.append(",");
      value(out, login && item._2() instanceof String ? "***" : item._2());
      out.append("]");
    }
    out.append("]}");
  }

  private void python(StringBuilder out, Object function) {
    out.append("{\"$python\":");
    try {
      scala.collection.Seq command = (scala.collection.Seq) call(function, "command");
      byte[] bytes = new byte[command.size()];
      for (int i = 0; i < bytes.length; i++) {
        bytes[i] = ((Number) command.apply(i)).byteValue();
      }
      text(out, hex(MessageDigest.getInstance("SHA-256").digest(bytes)));
    } catch (Exception error) {
      out.append("null");
    }
    out.append("}");
  }

  private static Object call(Object target, String name) throws Exception {
    Method method = target.getClass().getMethod(name, new Class[0]);
    method.setAccessible(true);
    return method.invoke(target, new Object[0]);
  }

  // ---- files ---------------------------------------------------------------------------------------------------

  private void files(StringBuilder out, org.apache.spark.sql.execution.datasources.HadoopFsRelation relation) {
    out.append("{\"$files\":{\"index\":");
    text(out, relation.location().getClass().getName());
    out.append(",\"format\":");
    text(out, relation.fileFormat().toString());
    out.append(",\"formatClass\":");
    text(out, relation.fileFormat().getClass().getName());
    out.append(",\"schema\":");
    dataType(out, relation.dataSchema());
    out.append(",\"partitions\":");
    dataType(out, relation.partitionSchema());
    out.append(",\"options\":");
    value(out, relation.options());
    out.append(",\"roots\":[");
    scala.collection.Iterator roots = ((scala.collection.Iterable) relation.location().rootPaths()).iterator();
    for (boolean started = false; roots.hasNext(); started = true) {
      out.append(started ? "," : "");
      text(out, roots.next().toString());
    }
    out.append("],\"files\":");
    StringBuilder listed = new StringBuilder();
    try {
      listing(listed, relation);
      out.append(listed);
    } catch (Exception error) {
      out.append("null");
    }
    out.append("}}");
  }

  /** [[path, size, modified, [partition values]], ...] as the relation's own index lists them. */
  private void listing(StringBuilder out, org.apache.spark.sql.execution.datasources.HadoopFsRelation relation)
      throws Exception {
    scala.collection.immutable.Seq none = scala.collection.immutable.Nil$.MODULE$;
    StructType partitions = relation.partitionSchema();
    scala.collection.Iterator directories =
        ((scala.collection.Iterable) relation.location().listFiles(none, none)).iterator();
    out.append("[");
    boolean started = false;
    while (directories.hasNext()) {
      Object directory = directories.next();
      InternalRow values = (InternalRow) call(directory, "values");
      scala.collection.Iterator found = ((scala.collection.Iterable) call(directory, "files")).iterator();
      while (found.hasNext()) {
        Object file = found.next();
        out.append(started ? ",[" : "[");
        started = true;
        text(out, ((org.apache.hadoop.fs.Path) call(file, "getPath")).toUri().toString());
        out.append(",").append(call(file, "getLen")).append(",").append(call(file, "getModificationTime")).append(",");
        row(out, values, partitions);
        out.append("]");
        left--;
        if (left < 0) {
          throw new IllegalStateException("too many files");
        }
      }
    }
    out.append("]");
  }

  // ---- tables of Delta Lake and Iceberg ------------------------------------------------------------------------

  /**
   * Where a table is and which version of it was read: {"format": .., "location": a path of Hadoop, "id": .., "version": ..}.
   * The version is that of the optimized plan: an index of Delta reads what is newest when the query is planned. Where
   * the optimizer left the leaf out, or the query ran within a command, it is that of the same columns in the query of
   * that command, or the one of the analysis if that is still the newest; else null.
   */
  private void lake(StringBuilder out, LogicalPlan leaf, boolean started) {
    StringBuilder found = new StringBuilder();
    try {
      if (leaf.getClass().getSimpleName().equals("DataSourceV2Relation")) {
        connected(found, leaf, call(leaf, "table"));
      } else {
        logged(found, leaf, call(leaf, "relation"));
      }
    } catch (Exception error) {
      return; // of a version that is not known: it is no lake, then
    }
    if (found.length() > 0) {
      name(out, "$lake", started);
      out.append("{").append(found).append("}");
    }
  }

  private void logged(StringBuilder out, LogicalPlan leaf, Object relation) throws Exception {
    if (!(relation instanceof org.apache.spark.sql.execution.datasources.HadoopFsRelation)) {
      return;
    }
    Object index = ((org.apache.spark.sql.execution.datasources.HadoopFsRelation) relation).location();
    if (!index.getClass().getName().endsWith(".delta.files.TahoeLogFileIndex")) {
      return;
    }
    Object root = ((scala.collection.Iterable) call(index, "rootPaths")).iterator().next();
    table(out, "delta", root, call(call(index, "metadata"), "id"));
    Object at = call(call(index, "snapshotAtAnalysis"), "version");
    Object version = read(leaf);
    if (version == null && (call(index, "isTimeTravelQuery").equals(Boolean.TRUE)
        || call(call(index, "getSnapshot"), "version").equals(at))) {
      version = at;
    }
    version(out, version);
    if (((scala.collection.Seq) call(index, "partitionFilters")).nonEmpty()) {
      out.append(",\"part\":true");
    }
    schema(out, (org.apache.spark.sql.execution.datasources.HadoopFsRelation) relation);
  }

  private void schema(StringBuilder out, org.apache.spark.sql.execution.datasources.HadoopFsRelation relation) {
    out.append(",\"schema\":");
    dataType(out, relation.dataSchema());
    out.append(",\"partitions\":");
    dataType(out, relation.partitionSchema());
    out.append(",\"options\":");
    value(out, relation.options());
  }

  private void connected(StringBuilder out, LogicalPlan leaf, Object table) throws Exception {
    String kind = table.getClass().getName();
    scala.Option named = (scala.Option) call(leaf, "identifier");
    scala.Option catalog = (scala.Option) call(leaf, "catalog");
    if (kind.endsWith(".delta.catalog.DeltaTableV2")) { // what is written to
      Object log = call(table, "deltaLog");
      table(out, "delta", call(log, "dataPath"), null);
      version(out, null);
    } else if (kind.endsWith("StagedDeltaTableV2") && named.isDefined()) { // of CREATE TABLE AS
      table(out, "delta", place((java.util.Map) call(table, "properties"), named.get()), null);
      version(out, null);
    } else if (kind.startsWith("org.apache.iceberg.spark.") && kind.endsWith("SparkTable")) {
      Object own = call(table, "table");
      if (hidden(own, "metadataTableType") != null) {
        return; // of another table's snapshots, files, ..
      }
      Object metadata = null;
      try {
        metadata = call(call(call(own, "operations"), "current"), "metadataFileLocation");
      } catch (Exception error) {
        metadata = null; // the newest below the table's place, then
      }
      table(out, "iceberg", call(own, "location"), metadata);
      Object version = read(leaf);
      java.util.Map options = (java.util.Map) call(leaf, "options");
      if (options.containsKey("start-snapshot-id") || options.containsKey("end-snapshot-id")
          || options.containsKey("start-timestamp") || options.containsKey("end-timestamp")) {
        out.append(",\"part\":true");
      } else if (version == null) {
        Object current = call(own, "currentSnapshot");
        Object pinned = hidden(table, "snapshotId");
        version = pinned == null ? hidden(table, "version") : pinned;
        boolean empty = current == null && version == null;
        if (empty) {
          version = "";
        } else if (pinned == null && (current == null || version == null
            || !String.valueOf(call(current, "snapshotId")).equals(String.valueOf(version)))) {
          version = null;
        }
      }
      version(out, version);
    }
    if (out.length() > 0 && named.isDefined()) {
      out.append(",\"name\":[");
      if (catalog.isDefined()) {
        text(out, String.valueOf(call(catalog.get(), "name")));
        out.append(",");
      }
      String[] space = (String[]) call(named.get(), "namespace");
      for (int i = 0; i < space.length; i++) {
        text(out, space[i]);
        out.append(",");
      }
      text(out, String.valueOf(call(named.get(), "name")));
      out.append("]");
    }
  }

  /** Where a table is, or will be, that a statement makes. */
  private Object place(java.util.Map properties, Object identifier) throws Exception {
    Object given = properties.get("location");
    String[] space = (String[]) call(identifier, "namespace");
    if (given != null || execution == null || space.length != 1) {
      return given == null ? "" : given;
    }
    Object name = new org.apache.spark.sql.catalyst.TableIdentifier(
        String.valueOf(call(identifier, "name")), new scala.Some(space[0]));
    Object catalog = call(call(call(execution, "sparkSession"), "sessionState"), "catalog");
    Class[] one = new Class[] {name.getClass()};
    Object uri;
    try {
      Object known = catalog.getClass().getMethod("getTableMetadata", one).invoke(catalog, new Object[] {name});
      uri = call(known, "location");
    } catch (Exception error) {
      uri = catalog.getClass().getMethod("defaultTablePath", one).invoke(catalog, new Object[] {name});
    }
    return new org.apache.hadoop.fs.Path((java.net.URI) uri);
  }

  private void table(StringBuilder out, String format, Object location, Object id) {
    out.append("\"format\":");
    text(out, format);
    out.append(",\"location\":");
    text(out, String.valueOf(location));
    out.append(",\"id\":");
    value(out, id);
  }

  private void version(StringBuilder out, Object version) {
    out.append(",\"version\":");
    value(out, version == null ? null : String.valueOf(version));
  }

  /** The version that a leaf was read at, of the optimized plan or of one that ran within it. */
  private Object read(LogicalPlan leaf) {
    if (execution == null) {
      return null;
    }
    try {
      Object phase = ((scala.collection.Map) call(call(execution, "tracker"), "phases")).apply("optimization");
      long from = ((Number) call(phase, "startTimeMs")).longValue();
      if (!searched) {
        searched = true;
        readAt((LogicalPlan) call(execution, "optimizedPlan"), new Long(from));
      }
      for (scala.collection.Iterator items = leaf.output().iterator(); items.hasNext(); ) {
        Object[] found = (Object[]) reads.get(new Long(((Attribute) items.next()).exprId().id()));
        if (found != null && ((Long) found[1]).longValue() >= from) {
          return found[0];
        }
      }
    } catch (Exception error) {
      return null;
    } catch (StackOverflowError error) {
      return null;
    }
    return null;
  }

  private void readAt(LogicalPlan plan, Long from) {
    String kind = plan.getClass().getSimpleName();
    Object version = null;
    try {
      if (kind.equals("LogicalRelation")) {
        Object relation = call(plan, "relation");
        if (relation instanceof org.apache.spark.sql.execution.datasources.HadoopFsRelation) {
          Object index = ((org.apache.spark.sql.execution.datasources.HadoopFsRelation) relation).location();
          if (index.getClass().getName().endsWith(".PreparedDeltaFileIndex")) {
            version = call(call(index, "preparedScan"), "version");
          }
        }
      } else if (kind.equals("DataSourceV2ScanRelation")) {
        Object scan = call(plan, "scan");
        if (scan.getClass().getName().endsWith(".iceberg.spark.source.SparkBatchQueryScan")) {
          version = hidden(scan, "snapshotId");
        }
      }
    } catch (Exception error) {
      version = null;
    }
    if (version != null) {
      for (scala.collection.Iterator items = plan.output().iterator(); items.hasNext(); ) {
        reads.put(new Long(((Attribute) items.next()).exprId().id()), new Object[] {version, from});
      }
      while (reads.size() > 10000) {
        reads.remove(reads.keySet().iterator().next());
      }
    }
    for (scala.collection.Iterator items = plan.children().iterator(); items.hasNext(); ) {
      readAt((LogicalPlan) items.next(), from);
    }
    for (scala.collection.Iterator items = plan.subqueries().iterator(); items.hasNext(); ) {
      readAt((LogicalPlan) items.next(), from);
    }
  }

  /** What a method without arguments returns, public or not; null where there is none. */
  private static Object hidden(Object target, String name) {
    for (Class kind = target.getClass(); kind != null; kind = kind.getSuperclass()) {
      try {
        Method method = kind.getDeclaredMethod(name, new Class[0]);
        method.setAccessible(true);
        return method.invoke(target, new Object[0]);
      } catch (Exception error) {
        continue;
      }
    }
    return null;
  }

  // ---- data ----------------------------------------------------------------------------------------------------

  private void rows(StringBuilder out, org.apache.spark.sql.catalyst.plans.logical.LocalRelation relation) {
    scala.collection.Seq data = relation.data();
    StructType schema = relation.schema();
    if ((long) data.size() * Math.max(1, schema.length()) > left) {
      out.append("null");
      return;
    }
    left -= (long) data.size() * Math.max(1, schema.length());
    out.append("[");
    scala.collection.Iterator items = data.iterator();
    for (boolean started = false; items.hasNext(); started = true) {
      out.append(started ? "," : "");
      row(out, (InternalRow) items.next(), schema);
    }
    out.append("]");
  }

  private void row(StringBuilder out, InternalRow row, StructType schema) {
    out.append("[");
    for (int i = 0; i < schema.length(); i++) {
      DataType type = ((org.apache.spark.sql.types.StructField) schema.apply(i)).dataType();
      out.append(i > 0 ? "," : "");
      internal(out, row.isNullAt(i) ? null : row.get(i, type), type);
    }
    out.append("]");
  }

  /** A value in Catalyst's own form: what is no JSON scalar is an object with one key that says what it is. */
  private void internal(StringBuilder out, Object value, DataType type) {
    values++;
    if (value == null) {
      out.append("null");
    } else if (value instanceof Boolean || value instanceof Integer || value instanceof Long
        || value instanceof Short || value instanceof Byte) {
      out.append(value);
    } else if (value instanceof Double || value instanceof Float) {
      number(out, ((Number) value).doubleValue());
    } else if (value instanceof UTF8String) {
      string(out, (UTF8String) value);
    } else if (value instanceof org.apache.spark.sql.types.Decimal) {
      out.append("{\"$d\":");
      text(out, ((org.apache.spark.sql.types.Decimal) value).toJavaBigDecimal().toString());
      out.append("}");
    } else if (value instanceof byte[]) {
      out.append("{\"$b\":");
      text(out, hex((byte[]) value));
      out.append("}");
    } else {
      nested(out, value, type);
    }
  }

  private void nested(StringBuilder out, Object value, DataType type) {
    if (value instanceof CalendarInterval) {
      CalendarInterval interval = (CalendarInterval) value;
      out.append("{\"$v\":[").append(interval.months).append(",").append(interval.days).append(",");
      out.append(interval.microseconds).append("]}");
    } else if (value instanceof ArrayData && type instanceof ArrayType) {
      out.append("{\"$v\":");
      array(out, (ArrayData) value, ((ArrayType) type).elementType());
      out.append("}");
    } else if (value instanceof MapData && type instanceof MapType) {
      MapData map = (MapData) value;
      out.append("{\"$m\":[");
      array(out, map.keyArray(), ((MapType) type).keyType());
      out.append(",");
      array(out, map.valueArray(), ((MapType) type).valueType());
      out.append("]}");
    } else if (value instanceof InternalRow && type instanceof StructType) {
      out.append("{\"$v\":");
      row(out, (InternalRow) value, (StructType) type);
      out.append("}");
    } else {
      out.append("{\"$object\":");
      text(out, value.getClass().getName());
      out.append("}");
    }
  }

  private void array(StringBuilder out, ArrayData items, DataType type) {
    out.append("[");
    for (int i = 0; i < items.numElements(); i++) {
      out.append(i > 0 ? "," : "");
      internal(out, items.isNullAt(i) ? null : items.get(i, type), type);
    }
    out.append("]");
  }

  private void number(StringBuilder out, double value) {
    out.append("{\"$f\":\"").append(value).append("\"}");
  }

  private void string(StringBuilder out, UTF8String value) {
    String decoded = value.toString();
    if (UTF8String.fromString(decoded).equals(value)) {
      text(out, decoded);
    } else {
      out.append("{\"$object\":\"text that is no UTF-8\"}");
    }
  }

  private static String hex(byte[] bytes) {
    StringBuilder out = new StringBuilder();
    for (int i = 0; i < bytes.length; i++) {
      out.append(Character.forDigit((bytes[i] >> 4) & 15, 16)).append(Character.forDigit(bytes[i] & 15, 16));
    }
    return out.toString();
  }

  private static void text(StringBuilder out, String value) {
    out.append('"');
    for (int i = 0; i < value.length(); i++) {
      char c = value.charAt(i);
      if (c == '"' || c == '\\') {
        out.append('\\').append(c);
      } else if (c < 32 || c > 126) {
        String digits = Integer.toHexString(c);
        out.append("\\u").append("0000".substring(digits.length())).append(digits);
      } else {
        out.append(c);
      }
    }
    out.append('"');
  }
}
