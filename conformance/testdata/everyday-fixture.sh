#!/usr/bin/env bash
# Makes the project, in the empty directory in which it runs, on which the everyday
# commands are tried: sources of several languages in one repository, with an ignored
# .env, a tracked one, one below node_modules, and a virtual environment.
set -euo pipefail
export GIT_AUTHOR_DATE='2026-01-02T03:04:05Z' GIT_COMMITTER_DATE='2026-01-02T03:04:05Z'
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1

write() { # PATH, content on standard input
	mkdir -p "$(dirname "$1")"
	cat >"$1"
}

# --- shell
printf 'line one\nline two\nfoo three\n' >a.txt
printf 'line one\nline 2\n' >b.txt
printf 'b 2\na 1\nb 2\n' >data.txt
printf 'name,kind,n\nx,a,3\ny,b,4\n' >data.csv
printf '{"items":[{"name":"one"},{"name":"two"}],"a":{"b":1}}\n' >data.json
printf '# comment\nkey = value\n' >config.ini
printf 'version: 1\n' >config.yaml
printf '# Project\nfoo\nTODO: more\nx\n4\n5\n6\n' >README.md
printf 'built\n' >build.log
printf '#!/bin/sh\necho from the script\n' >script.sh
printf 'export ENV_SH=1\n' >env.sh
printf 'old\n' >old.txt
printf 'fix: a message\n' >message.txt
printf 'x\n' >one.tmp
printf 'y\n' >two.tmp
chmod +x script.sh
mkdir -p lib empty build/out bin
printf '#!/bin/sh\necho tool\n' >bin/tool
chmod +x bin/tool
printf 'built\n' >build/out/result

# --- go
write go.mod <<<$'module example.com/app\n\ngo 1.21'
write main.go <<<$'package main\n\nimport "fmt"\n\n// TODO: more\nfunc main() { fmt.Println("app") }'
write cmd/app/main.go <<<$'package main\n\nimport (\n\t"fmt"\n\n\t"example.com/app/internal/parser"\n)\n\nfunc main() { fmt.Println(parser.Parse("a b")) }'
write internal/parser/parser.go <<<$'// Package parser splits texts.\npackage parser\n\nimport "strings"\n\n// Parse splits s.\nfunc Parse(s string) []string { return strings.Fields(s) }'
write internal/parser/parser_test.go <<<$'package parser\n\nimport "testing"\n\nfunc TestParse(t *testing.T) {\n\tif len(Parse("a b")) != 2 {\n\t\tt.Fail()\n\t}\n}\n\nfunc FuzzParse(f *testing.F) {\n\tf.Fuzz(func(t *testing.T, s string) { Parse(s) })\n}\n\nfunc BenchmarkParse(b *testing.B) {\n\tfor range b.N {\n\t\tParse("a b")\n\t}\n}'
write pkg/store/store.go <<<$'// Package store keeps things.\npackage store\n\n// New returns a store.\nfunc New() map[string]string { return map[string]string{} }'
write pkg/store/store_test.go <<<$'package store\n\nimport "testing"\n\nfunc TestA(t *testing.T) { New() }'
write src/main.go <<<$'// Package src is here to be read.\npackage src\n\n// foo returns 1. TODO: more\nfunc foo() int { return 1 }\n\nvar _ = foo()'
write src/util.go <<<$'package src\n\nfunc Error() string { return "foo" }\n\nvar _ = Error()'
cp src/util.go lib/util.go

# --- node
write package.json <<<'{"name":"app","version":"1.0.0","private":true,"scripts":{"test":"node --test src/","test:unit":"node -e 0","build":"node scripts/build.js","lint":"node --check src/index.js","start":"node index.js","dev":"node index.js"}}'
write index.js <<<'console.log("index")'
write src/index.js <<<'module.exports = 1'
write src/index.test.js <<<$'const test = require("node:test")\ntest("one", () => {})'
write scripts/build.js <<<$'require("fs").mkdirSync("dist", {recursive: true})\nrequire("fs").writeFileSync("dist/out.js", "1")'
write node_modules/left/package.json <<<'{"name":"left","version":"1.0.0","main":"index.js"}'
write node_modules/left/index.js <<<'module.exports = 1'
write node_modules/left/.env <<<'OF_A_PACKAGE=1'

# --- python
write pyproject.toml <<<$'[project]\nname = "app"\nversion = "1.0"'
write setup.py <<<$'from setuptools import setup\nsetup(name="app", version="1.0")'
write requirements.txt </dev/null
write main.py <<<'print("main")'
write src/app.py <<<$'def answer():\n    return 42'
write tests/__init__.py </dev/null
write tests/test_api.py <<<$'import unittest\n\n\nclass TestUser(unittest.TestCase):\n    def test_create(self):\n        self.assertTrue(True)'
write manage.py <<<'print("manage")'
python3 -m venv --without-pip .venv >/dev/null 2>&1 || true

# --- rust
write Cargo.toml <<<$'[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n\n[lib]\nname = "core_app"\npath = "src/lib.rs"\n\n[[bin]]\nname = "app"\npath = "src/main.rs"\n\n[[bin]]\nname = "tool"\npath = "src/tool.rs"\n\n[[example]]\nname = "demo"\npath = "examples/demo.rs"'
write src/main.rs <<<'fn main() { println!("app"); }'
write src/tool.rs <<<'fn main() { println!("tool"); }'
write src/lib.rs <<<$'//! A library.\n/// Adds one.\npub fn one(n: u32) -> u32 {\n    n + 1\n}\n\n#[cfg(test)]\nmod parser {\n    mod tests {\n        #[test]\n        fn adds() {\n            assert_eq!(crate::one(1), 2);\n        }\n    }\n}'
write examples/demo.rs <<<'fn main() {}'
write main.rs <<<'fn main() { println!("main"); }'

# --- java
write pom.xml <<<'<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>app</artifactId><version>1</version></project>'
write build.gradle <<<"plugins { id 'java' }"
write Main.java <<<'public class Main { public static void main(String[] a) { System.out.println("main"); } }'
write src/Main.java <<<'public class Main { public static void main(String[] a) { System.out.println("main"); } }'
write target/surefire-reports/one.txt <<<'Tests run: 1'

# --- c
write Makefile <<<$'CC ?= cc\nall: app\napp: main.o util.o\n\t$(CC) -o app main.o util.o\n%.o: %.c\n\t$(CC) $(CFLAGS) -c -o $@ $<\ntest check: all\n\t./app\nbuild/app: all\n\tmkdir -p build && cp app build/app\ninstall: all\n\tmkdir -p $(DESTDIR)/bin && cp app $(DESTDIR)/bin/app\nclean distclean:\n\trm -f *.o app\nlint fmt help:\n\t@echo $@\n.PHONY: all test check install clean distclean lint fmt help'
write src/Makefile <<<$'all:\n\t@echo in src'
write CMakeLists.txt <<<$'cmake_minimum_required(VERSION 3.10)\nproject(app C)\nadd_executable(app main.c util.c)'
write hello.c <<<$'#include <stdio.h>\nint main(void) { puts("hello"); return 0; }'
write main.c <<<$'int util(void);\nint main(void) { return util(); }'
write util.c <<<'int util(void) { return 0; }'
write main.cpp <<<$'#include <cstdio>\nint main() { std::puts("cpp"); }'
write src/main.c <<<'int main(void) { return 0; }'
write configure <<<$'#!/bin/sh\necho "prefix $*" > config.status'
write autogen.sh <<<$'#!/bin/sh\necho generated > generated.txt'
chmod +x configure autogen.sh

# --- containers
write Dockerfile <<<$'FROM scratch\nCOPY README.md /'
write compose.yaml <<<$'services:\n  web:\n    image: scratch'
write k8s/app.yaml <<<$'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app\ndata:\n  a: b'
write k8s/kustomization.yaml <<<$'resources:\n  - app.yaml'
write main.tf <<<$'output "x" {\n  value = 1\n}'

# --- the repository
git init -q -b main .
git config user.name Ada
git config user.email ada@example.org
printf '/build/\nnode_modules/\n.venv/\ntarget/\n/.env\n*.tmp\n/app\n*.o\n' >.gitignore
printf 'SERVICE=1\n' | write service/.env
git add -A
git commit -qm 'first'
printf 'more\n' >>README.md
git commit -qam 'second'
git tag v1.0
git branch merged-branch
git checkout -q -b topic
printf 'topic\n' >topic.txt
git add topic.txt
git commit -qm 'topic'
git checkout -q main
printf 'third\n' >>a.txt
git commit -qam 'third'
printf 'stashed\n' >>b.txt
git stash -q
printf 'patched\n' >>lib/util.go
git diff >fix.patch
git checkout -q lib/util.go
git add fix.patch
git commit -qm 'a patch'
printf 'changed\n' >>src/main.go
printf 'new\n' >untracked.txt
printf 'SECRET=1\n' >.env

# What a build leaves, with tools that are everywhere.
tar czf out.tgz src
if command -v zip >/dev/null; then zip -qr out.zip src; fi
gzip -k -c data.txt >data.txt.gz
if command -v cc >/dev/null; then cc -o app hello.c && cp app hello; fi
