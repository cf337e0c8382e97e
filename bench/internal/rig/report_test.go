package rig

import "testing"

// A run of some parts must keep the other sections, each with the day and the machine of its own run.
func TestSectionsOfOtherRunsStay(t *testing.T) {
	first := merged("", "1 May, here.\n\n### a\n\n1\n\n### b\n\n2\n")
	want := "### a\n\n1 May, here.\n\n1\n\n### b\n\n1 May, here.\n\n2\n"
	if first != want {
		t.Errorf("first run:\n%s", first)
	}
	second := merged(first, "2 May, there.\n\n### b\n\n3\n\n### c\n\n4\n")
	want = "### a\n\n1 May, here.\n\n1\n\n### b\n\n2 May, there.\n\n3\n\n### c\n\n2 May, there.\n\n4\n"
	if second != want {
		t.Errorf("second run:\n%s", second)
	}
	if got := merged(second, "3 May.\n\n| a table |\n"); got != "3 May.\n\n| a table |\n" {
		t.Errorf("without sections:\n%s", got)
	}
}
