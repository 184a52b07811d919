import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.DataType;

/**
 * The JSON of a plan as TreeNode.toJSON() gives it, at a tenth of its cost: the names of constructor parameters, which
 * Spark finds by Scala's reflection for every node, are looked up once a class, and the text is written at once.
 *
 * apply(plan): the text. Nothing rests on knowing Spark's rules: a plan with a class that was not seen before is also
 * given to toJSON(), and only if both texts are equal are its classes trusted from then on. Classes of a plan whose
 * texts differ never are, and what no rule here covers is Spark's from the start.
 *
 * It keeps to Java 1.4 (no generics, no lambdas), which is what Janino compiles everywhere.
 */
public class PlanJson implements java.util.function.Function {
  private static final String CATALYST = "org.apache.spark.sql.catalyst.";
  private static final Set LITERALS =
      new HashSet(Arrays.asList(new Object[] {"boolean", "byte", "short", "integer", "long", "string"}));

  /** Products that Spark writes with their fields, whatever these are. */
  private static final String[] WRITTEN = {
    "CatalystIdentifier", "plans.JoinType", "catalog.BucketSpec", "catalog.CatalogTable", "catalog.FunctionResource",
    "catalog.CatalogTableType", "catalog.CatalogStorageFormat", "plans.physical.Partitioning",
    "plans.physical.BroadcastMode"
  };
  private static final int MAX_NAMES = 100;

  private final Map names = new HashMap();
  private final Map plain = new HashMap();
  private final Set trusted = new HashSet();
  private final Set refused = new HashSet();
  private final Set uncovered = new HashSet();
  private List written;
  private int compared;

  public synchronized Object apply(Object plan) {
    Writer writer = new Writer();
    boolean isWhole;
    try {
      isWhole = plan instanceof TreeNode && writer.tree((TreeNode) plan);
    } catch (StackOverflowError error) {
      isWhole = false;
    } catch (Exception error) {
      isWhole = false;
    }
    if (isWhole && trusted.containsAll(writer.classes)) {
      return writer.text.toString();
    }
    String spark = ((TreeNode) plan).toJSON();
    if (isWhole && !intersects(writer.classes, refused)) {
      compared++;
      if (spark.contentEquals(writer.text)) {
        trusted.addAll(writer.classes);
      } else {
        writer.classes.removeAll(trusted);
        refused.addAll(writer.classes);
      }
    }
    return spark;
  }

  /** How many plans were compared; the classes that are not trusted, and those that no rule here covers. */
  public synchronized String toString() {
    return compared + " " + refused + " " + uncovered;
  }

  private boolean uncovered(String name) {
    if (uncovered.size() < MAX_NAMES) {
      uncovered.add(name);
    }
    return false;
  }

  private static boolean intersects(Set some, Set others) {
    for (Iterator each = some.iterator(); each.hasNext();) {
      if (others.contains(each.next())) {
        return true;
      }
    }
    return false;
  }

  // ---- classes -------------------------------------------------------------------------------------------------

  /** The names of the constructor's parameters, as Spark has them. */
  private String[] namesOf(Class type) throws Exception {
    String[] known = (String[]) names.get(type);
    if (known == null) {
      Class reflection = Class.forName(CATALYST + "ScalaReflection$", true, TreeNode.class.getClassLoader());
      Method method = reflection.getMethod("getConstructorParameterNames", new Class[] {Class.class});
      scala.collection.Seq found =
          (scala.collection.Seq) method.invoke(reflection.getField("MODULE$").get(null), new Object[] {type});
      known = new String[found.size()];
      for (int i = 0; i < known.length; i++) {
        known[i] = (String) found.apply(i);
      }
      names.put(type, known);
    }
    return known;
  }

  /** Whether a class has the jsonFields() of all nodes, and none of its own. */
  private boolean isPlain(Class type) {
    Boolean known = (Boolean) plain.get(type);
    if (known == null) {
      known = Boolean.TRUE;
      for (Class owner = type; owner != null && owner != TreeNode.class; owner = owner.getSuperclass()) {
        Method[] own = owner.getDeclaredMethods();
        for (int i = 0; i < own.length; i++) {
          if (own[i].getName().equals("jsonFields")) {
            known = Boolean.FALSE;
          }
        }
      }
      plain.put(type, known);
    }
    return known.booleanValue();
  }

  private boolean isWritten(Object product) {
    if (written == null) {
      written = new ArrayList();
      written.add(org.apache.spark.sql.types.StructField.class);
      for (int i = 0; i < WRITTEN.length; i++) {
        try {
          written.add(Class.forName(CATALYST + WRITTEN[i], false, TreeNode.class.getClassLoader()));
        } catch (ClassNotFoundException error) {
          uncovered(WRITTEN[i]); // not in this version of Spark
        }
      }
    }
    for (int i = 0; i < written.size(); i++) {
      if (((Class) written.get(i)).isInstance(product)) {
        return true;
      }
    }
    return false;
  }

  // ---- texts ---------------------------------------------------------------------------------------------------

  /** The text of one plan. Its methods return false where no rule here covers a value. */
  private class Writer {
    final StringBuilder text = new StringBuilder();
    final Set classes = new HashSet();

    boolean tree(TreeNode root) throws Exception {
      text.append('[');
      boolean done = node(root, true);
      text.append(']');
      return done;
    }

    private boolean node(TreeNode node, boolean first) throws Exception {
      scala.collection.Seq children = (scala.collection.Seq) node.children();
      classes.add(node.getClass());
      text.append(first ? "{\"class\":" : ",{\"class\":");
      string(node.getClass().getName());
      text.append(",\"num-children\":").append(children.size());
      if (!(node instanceof Literal ? literal((Literal) node) : isPlain(node.getClass()) && fields(node, children))) {
        return uncovered(node.getClass().getName());
      }
      text.append('}');
      for (scala.collection.Iterator each = children.iterator(); each.hasNext();) {
        if (!node((TreeNode) each.next(), false)) {
          return false;
        }
      }
      return true;
    }

    /** A literal; those whose text depends on their type, such as dates, are left to Spark. */
    private boolean literal(Literal literal) {
      String type = literal.dataType().typeName();
      Object value = literal.value();
      if (value != null && !type.startsWith("decimal") && !LITERALS.contains(type)) {
        return false;
      }
      classes.add(value == null ? "NULL" : "literal " + literal.dataType().getClass().getName());
      text.append(",\"value\":");
      if (value == null) {
        text.append("null");
      } else {
        string(value.toString());
      }
      text.append(",\"dataType\":").append(literal.dataType().json());
      return true;
    }

    private boolean fields(TreeNode node, scala.collection.Seq children) throws Exception {
      String[] named = namesOf(node.getClass());
      scala.collection.Seq more = (scala.collection.Seq) node.otherCopyArgs();
      int own = node.productArity();
      if (own + more.size() != named.length) {
        return false;
      }
      for (int i = 0; i < named.length; i++) {
        Object value = i < own ? node.productElement(i) : more.apply(i - own);
        int start = text.length();
        text.append(',');
        string(named[i]);
        text.append(':');
        if (value instanceof TreeNode && node.containsChild().contains(value)) {
          text.append(children.indexOf(value));
        } else if (value instanceof scala.collection.Seq && areChildren(node, (scala.collection.Seq) value)) {
          places(children, (scala.collection.Seq) value);
        } else if (value instanceof scala.None$) {
          text.setLength(start);
        } else if (!value(value)) {
          return false;
        }
      }
      return true;
    }

    private boolean areChildren(TreeNode node, scala.collection.Seq values) {
      for (scala.collection.Iterator each = values.iterator(); each.hasNext();) {
        Object value = each.next();
        if (!(value instanceof TreeNode) || !node.containsChild().contains(value)) {
          return false;
        }
      }
      return true;
    }

    private void places(scala.collection.Seq children, scala.collection.Seq values) {
      text.append('[');
      for (scala.collection.Iterator each = values.iterator(); each.hasNext();) {
        text.append(children.indexOf(each.next())).append(each.hasNext() ? "," : "");
      }
      text.append(']');
    }

    private boolean value(Object value) throws Exception {
      if (value == null) {
        text.append("null");
        return true;
      }
      classes.add(value.getClass());
      if (value instanceof Boolean || value instanceof Integer || value instanceof Long || value instanceof Short
          || value instanceof Byte) {
        text.append(value);
        return true;
      }
      if (value instanceof String || value instanceof java.util.UUID) {
        string(value.toString());
        return true;
      }
      if (value instanceof DataType) {
        text.append(((DataType) value).json());
        return true;
      }
      if (value instanceof org.apache.spark.sql.types.Metadata) {
        text.append("{}");
        return true;
      }
      if (value instanceof TreeNode) {
        return tree((TreeNode) value);
      }
      if (value instanceof scala.Some) {
        return value(((scala.Some) value).get());
      }
      if (value instanceof scala.collection.Seq) {
        return sequence((scala.collection.Seq) value);
      }
      return other(value);
    }

    private boolean other(Object value) throws Exception {
      String name = value.getClass().getName();
      if (value instanceof Number || value instanceof Character || value instanceof Class || value instanceof scala.Option
          || name.equals("org.apache.spark.storage.StorageLevel")) {
        return uncovered(name);
      }
      if (value instanceof scala.collection.Map) {
        text.append("null");
      } else if (name.endsWith("$")) {
        text.append("{\"object\":");
        string(name);
        text.append('}');
      } else if (value instanceof scala.Product) {
        return product((scala.Product) value, name);
      } else {
        text.append("null");
      }
      return true;
    }

    private boolean product(scala.Product product, String name) throws Exception {
      boolean hasFields = name.equals(CATALYST + "expressions.ExprId") || name.equals(CATALYST + "AliasIdentifier");
      for (int i = 0; i < product.productArity(); i++) {
        hasFields |= product.productElement(i) instanceof TreeNode;
      }
      if (!hasFields && isWritten(product)) {
        return uncovered(name);
      }
      if (!hasFields) {
        text.append("null");
        return true;
      }
      String[] named = namesOf(product.getClass());
      if (named.length != product.productArity()) {
        return false;
      }
      text.append("{\"product-class\":");
      string(name);
      for (int i = 0; i < named.length; i++) {
        if (product.productElement(i) instanceof scala.Option) {
          return uncovered(name);
        }
        text.append(',');
        string(named[i]);
        text.append(':');
        if (!value(product.productElement(i))) {
          return false;
        }
      }
      text.append('}');
      return true;
    }

    private boolean sequence(scala.collection.Seq values) throws Exception {
      if (values.size() > 0 && values.apply(0) instanceof String) {
        if (values.size() > org.apache.spark.sql.internal.SQLConf.get().maxToStringFields()) {
          return false;
        }
        string(values.mkString("[", ", ", "]"));
        return true;
      }
      text.append('[');
      for (scala.collection.Iterator each = values.iterator(); each.hasNext();) {
        Object item = each.next();
        if (!(item instanceof scala.Product) || item instanceof scala.Option || !value(item)) {
          return uncovered("a list of " + (item == null ? "null" : item.getClass().getName()));
        }
        text.append(each.hasNext() ? "," : "");
      }
      text.append(']');
      return true;
    }

    private void string(String value) {
      text.append('"');
      for (int i = 0; i < value.length(); i++) {
        char c = value.charAt(i);
        if (c == '"' || c == '\\') {
          text.append('\\').append(c);
        } else if (c < 32) {
          String digits = Integer.toHexString(c).toUpperCase();
          text.append(digits.length() == 1 ? "\\u000" : "\\u00").append(digits);
        } else {
          text.append(c);
        }
      }
      text.append('"');
    }
  }
}
