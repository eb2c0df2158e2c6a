#!/bin/sh
# needs: javac java
set -eu
printf 'public class Hello { public static void main(String[] a) throws Exception { Thread t = new Thread(() -> System.out.println("hello")); t.start(); t.join(); } }\n' >Hello.java
javac -J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC Hello.java
test "$(java -Xmx64m Hello)" = hello
