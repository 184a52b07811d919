import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Calls many methods of an object and of what they return, in one call from outside of the JVM.
 *
 * apply(object, request): a request has a method a line, indented by one space below the method whose result it is
 * called on, and sections that start with "=name" at the left edge:
 *
 *   analyzed =plan         the methods of section plan are called on the result
 *   get:numOutputRows      with an argument of text; ":#5" is an argument of type int
 *   *                      every element of a Scala sequence
 *   ?InMemoryFileIndex     the lines below, only if the object's class has this simple name; "?*Stage" matches the end
 *                          of it, "?!Stage" every other name
 *
 * The answer is JSON in its first line, then the characters of long texts, one after another. A result is a scalar,
 * {"r": [start, length]} of such a text, {"f": {method: result}} of an object, {"s": [result, ...]} of a sequence. A
 * method that does not exist, that fails, or whose result is none of these or too long is left out: whoever needs it
 * calls it.
 *
 * apply(function, name): results of methods of this name and no argument are those of the function.
 *
 * It keeps to Java 1.4 (no generics, no lambdas), which is what Janino compiles everywhere.
 */
public class Prefetcher implements java.util.function.BiFunction {
  private static final int MAX_RESULTS = 20000;
  private static final int MAX_SHORT = 200;
  private static final int MAX_CHARACTERS = 16 << 20;
  private static final int MAX_KNOWN = 64;

  private final Map methods = new HashMap();
  private final Map requests = new HashMap();
  private final Map functions = new HashMap();

  public synchronized Object apply(Object target, Object request) {
    if (target instanceof java.util.function.Function) {
      functions.put(request, target);
      return "";
    }
    Map sections = (Map) requests.get(request);
    if (sections == null) {
      sections = parsed((String) request);
      if (requests.size() >= MAX_KNOWN) {
        requests.clear();
      }
      requests.put(request, sections);
    }
    Answer answer = new Answer(sections);
    try {
      answer.object(target, (List) sections.get(""));
    } catch (StackOverflowError error) {
      return "{\"f\":{}}\n";
    }
    return answer.head.append("\n").append(answer.tail).toString();
  }

  // ---- requests ------------------------------------------------------------------------------------------------

  /** A line of a request. */
  private static class Line {
    String key;
    String name;
    Object argument;
    String section;
    List below = new ArrayList();
  }

  private static Map parsed(String request) {
    Map sections = new HashMap();
    List open = new ArrayList();
    open.add(new ArrayList());
    sections.put("", open.get(0));
    String[] lines = request.split("\n");
    for (int i = 0; i < lines.length; i++) {
      if (lines[i].startsWith("=")) {
        open.clear();
        open.add(new ArrayList());
        sections.put(lines[i].substring(1), open.get(0));
        continue;
      }
      int depth = 0;
      while (depth < lines[i].length() && lines[i].charAt(depth) == ' ') {
        depth++;
      }
      Line line = line(lines[i].substring(depth));
      while (open.size() > depth + 1) {
        open.remove(open.size() - 1);
      }
      ((List) open.get(depth)).add(line);
      open.add(line.below);
    }
    return sections;
  }

  private static Line line(String text) {
    Line line = new Line();
    int section = text.indexOf(" =");
    if (section >= 0) {
      line.section = text.substring(section + 2);
      text = text.substring(0, section);
    }
    line.key = text;
    int colon = text.indexOf(':');
    line.name = colon < 0 ? text : text.substring(0, colon);
    if (colon >= 0 && text.startsWith(":#", colon)) {
      line.argument = new Integer(text.substring(colon + 2));
    } else if (colon >= 0) {
      line.argument = text.substring(colon + 1).replace("\\n", "\n");
    }
    return line;
  }

  // ---- methods -------------------------------------------------------------------------------------------------

  private Method method(Class type, String name, Object argument) {
    Map own = (Map) methods.get(type);
    if (own == null) {
      own = new HashMap();
      methods.put(type, own);
    }
    String key = argument == null ? name : argument instanceof Integer ? name + "#" : name + ":";
    if (!own.containsKey(key)) {
      own.put(key, found(type, name, argument));
    }
    return (Method) own.get(key);
  }

  private static Method found(Class type, String name, Object argument) {
    Method[] every = type.getMethods();
    Method best = null;
    for (int i = 0; i < every.length; i++) {
      Class[] wanted = every[i].getParameterTypes();
      if (!every[i].getName().equals(name) || wanted.length != (argument == null ? 0 : 1)) {
        continue;
      }
      if (argument instanceof Integer && wanted[0] != int.class && wanted[0] != long.class) {
        continue;
      }
      if (argument instanceof String && wanted[0] != String.class && wanted[0] != Object.class) {
        continue;
      }
      if (best == null || best.isBridge()) {
        best = every[i];
      }
    }
    if (best != null) {
      try {
        best.setAccessible(true);
      } catch (RuntimeException error) {
        return best; // of a closed module: what is public there can be called all the same
      }
    }
    return best;
  }

  /** The result of a method; the prefetcher itself where there is none. */
  private Object called(Object target, Line line) {
    try {
      if (line.name.equals("getClass")) {
        return target.getClass();
      }
      Method method = method(target.getClass(), line.name, line.argument);
      if (method == null) {
        return this;
      }
      if (line.argument == null && functions.containsKey(line.name)) {
        return ((java.util.function.Function) functions.get(line.name)).apply(target);
      }
      if (line.argument == null) {
        return method.invoke(target, new Object[0]);
      }
      Object argument = line.argument;
      if (method.getParameterTypes()[0] == long.class) {
        argument = new Long(((Integer) argument).longValue());
      }
      return method.invoke(target, new Object[] {argument});
    } catch (InvocationTargetException error) {
      if (error.getTargetException() instanceof StackOverflowError) {
        throw (StackOverflowError) error.getTargetException();
      }
      return this;
    } catch (Exception error) {
      return this;
    }
  }

  // ---- answers -------------------------------------------------------------------------------------------------

  /** The answer to one request. */
  private class Answer {
    final StringBuilder head = new StringBuilder();
    final StringBuilder tail = new StringBuilder();
    private final Map sections;
    private int characters;
    private int results;

    Answer(Map sections) {
      this.sections = sections;
    }

    void object(Object target, List lines) {
      head.append("{\"f\":{");
      fields(target, lines, false);
      head.append("}");
      for (int i = 0; i < lines.size(); i++) {
        if (((Line) lines.get(i)).key.equals("*") && target instanceof scala.collection.Seq) {
          elements((scala.collection.Seq) target, (Line) lines.get(i));
          break;
        }
      }
      head.append("}");
    }

    private boolean fields(Object target, List lines, boolean started) {
      for (int i = 0; i < lines.size(); i++) {
        Line line = (Line) lines.get(i);
        if (line.key.startsWith("?")) {
          if (fits(target, line.key.substring(1))) {
            started = fields(target, line.below, started);
          }
        } else if (!line.key.equals("*")) {
          started = field(target, line, started);
        }
      }
      return started;
    }

    private boolean fits(Object target, String pattern) {
      if (pattern.startsWith("!")) {
        return !fits(target, pattern.substring(1));
      }
      String name = target.getClass().getSimpleName();
      return pattern.startsWith("*") ? name.endsWith(pattern.substring(1)) : name.equals(pattern);
    }

    private boolean field(Object target, Line line, boolean started) {
      if (results++ > MAX_RESULTS) {
        return started;
      }
      Object result = called(target, line);
      List below = below(line);
      if (result == Prefetcher.this || !(isScalar(result) || below.size() > 0) || isTooLong(result)) {
        return started;
      }
      head.append(started ? ",\"" : "\"").append(escaped(line.key)).append("\":");
      result(result, below);
      return true;
    }

    private String escaped(String key) {
      return key.replace("\\", "\\\\").replace(String.valueOf((char) 1), "\\" + "u0001");
    }

    /** Listings of millions of files are read one by one, as they are wanted. */
    private boolean isTooLong(Object value) {
      return value instanceof String && ((String) value).length() > MAX_CHARACTERS - characters;
    }

    private List below(Line line) {
      return line.section == null ? line.below : (List) sections.get(line.section);
    }

    private void elements(scala.collection.Seq items, Line line) {
      head.append(",\"s\":[");
      scala.collection.Iterator each = items.iterator();
      for (boolean started = false; each.hasNext(); started = true) {
        head.append(started ? "," : "");
        result(each.next(), below(line));
      }
      head.append("]");
    }

    private boolean isScalar(Object value) {
      return value == null || value instanceof String || value instanceof Boolean || value instanceof Integer
          || value instanceof Long || value instanceof Short || value instanceof Byte;
    }

    private void result(Object value, List below) {
      if (value instanceof String) {
        text((String) value);
      } else if (isScalar(value)) {
        head.append(value);
      } else {
        object(value, below);
      }
    }

    private void text(String value) {
      if (value.length() <= MAX_SHORT && isPlain(value)) {
        head.append('"').append(value).append('"');
        return;
      }
      int length = value.codePointCount(0, value.length());
      head.append("{\"r\":[").append(characters).append(",").append(length).append("]}");
      tail.append(value);
      characters += length;
    }

    private boolean isPlain(String value) {
      for (int i = 0; i < value.length(); i++) {
        char c = value.charAt(i);
        if (c < 32 || c > 126 || c == '"' || c == '\\') {
          return false;
        }
      }
      return true;
    }
  }
}
