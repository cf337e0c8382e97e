package main

import (
	"os"
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
