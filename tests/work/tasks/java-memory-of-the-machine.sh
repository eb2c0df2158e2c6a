#!/bin/sh
# needs: javac java
# How much memory and processor there is, which Gradle and all that measures itself asks for: Java looks for its control groups.
set -eu
cat >Much.java <<'X'
import java.lang.management.ManagementFactory;
public class Much {
    public static void main(String[] a) {
        var here = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        System.out.println(here.getTotalMemorySize() > 0 && here.getFreeMemorySize() > 0 && here.getCpuLoad() <= 1);
    }
}
X
test "$(java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx128m Much.java)" = true
