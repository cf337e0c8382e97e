package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A mutant that no longer fits the code shows nothing: it is to be written anew with the change.
func TestEveryMutantFitsTheCode(t *testing.T) {
	all, err := parseAll(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	topics := map[string]int{}
	for _, m := range all {
		topics[m.topic]++
		text, err := os.ReadFile("../../" + m.file)
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := m.apply(string(text)); err != nil {
			t.Error(err)
		}
		if (m.killed == "") == (m.survives == "") {
			t.Errorf("mutant %s needs killed: ./package TestName, or survives: why no test can go red", m.name)
		}
		pkg, tests, _ := strings.Cut(m.killed, " ")
		for _, test := range strings.FieldsFunc(tests, func(r rune) bool { return r == '|' }) {
			if !hasTest(t, "../../"+pkg, test) {
				t.Errorf("mutant %s: %s has no %s: name the test that kills it today", m.name, pkg, test)
			}
		}
	}
	for topic, n := range topics {
		if n < 5 {
			t.Errorf("topic %s has %d mutants, want at least five", topic, n)
		}
	}
	if len(topics) < 19 {
		t.Errorf("there are %d topics, want one for each mechanism behind a promise", len(topics))
	}
}

// hasTest reports whether a package has a test; of a subtest it looks for the test around it.
func hasTest(t *testing.T, dir, test string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	test, _, _ = strings.Cut(test, "/")
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+test+"(t *testing.T)") {
			return true
		}
	}
	return false
}
