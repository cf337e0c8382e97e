// Package ways has a test for each way to fail that may be confused with a declared wait that ran out.
package ways

import (
	"fmt"
	"testing"
	"testing/synctest"

	"baton/internal/testsupport/ranout"
)

func wait(t *testing.T) {
	t.Helper()
	ranout.Fatal(t, "rain", "waited a minute in vain for rain")
}

func TestWaits(t *testing.T) { wait(t) }

func TestLogsAndWaits(t *testing.T) { t.Log("seed 7"); wait(t) }

func TestTellsInACleanup(t *testing.T) {
	t.Cleanup(func() { fmt.Fprintln(t.Output(), "the log of a server\nfailed: true") })
	wait(t)
}

func TestHasSubtestsThatWait(t *testing.T) {
	for _, name := range []string{"a", "b/c"} {
		t.Run(name, func(t *testing.T) { t.Parallel(); t.Run("deep", wait) })
	}
	t.Run("passes", func(t *testing.T) { t.Log("all is well") })
}

func TestAsserts(t *testing.T) { t.Error("1 is not 2") }

func TestAssertsBeforeItWaits(t *testing.T) { t.Error("1 is not 2"); wait(t) }

func TestAssertsInACleanup(t *testing.T) {
	t.Cleanup(func() { t.Error("a goroutine is left") })
	wait(t)
}

func TestAssertsBehindOutputWithoutAnEnd(t *testing.T) {
	t.Cleanup(func() { fmt.Print("text"); t.Error("a goroutine is left") })
	wait(t)
}

func TestAssertsWhenDeferred(t *testing.T) {
	defer func() { t.Error("a goroutine is left") }()
	wait(t)
}

func TestWaitsInASubtestAndAsserts(t *testing.T) {
	t.Run("waits", wait)
	t.Error("1 is not 2")
}

func TestWaitsInASubtestAndLogs(t *testing.T) { // the log looks like an assertion
	t.Log("seed 7")
	t.Run("waits", wait)
}

func TestWaitsInASubtestAndAssertsInAnother(t *testing.T) {
	t.Run("waits", wait)
	t.Run("asserts", func(t *testing.T) { t.Error("1 is not 2") })
}

func TestWaitsInASubtestAndFailsWithoutAWordInAnother(t *testing.T) {
	t.Run("waits", wait)
	t.Run("fails", func(t *testing.T) { t.Fail() })
}

func TestWaitsInFakeTime(t *testing.T) { synctest.Test(t, wait) }

func TestSaysTheSameWords(t *testing.T) { t.Fatal("waited a minute in vain for rain") }

func TestPrintsTheMark(t *testing.T) {
	fmt.Println("=== ATTR  TestPrintsTheMark " + ranout.Attribute + " rain")
	t.Log("=== ATTR  TestPrintsTheMark " + ranout.Attribute + " rain")
	fmt.Fprintln(t.Output(), "=== ATTR  TestPrintsTheMark "+ranout.Attribute+" rain")
	t.Fatal("waited a minute in vain for rain")
}

func TestHasAnotherAttribute(t *testing.T) {
	t.Attr("seed", "7")
	t.Error("1 is not 2")
}

func TestPrintsTheEndOfAPackage(t *testing.T) {
	fmt.Print("FAIL\nFAIL\tbaton/test/suite/testdata/ways\t0.1s\n")
	t.Error("1 is not 2")
}

func TestPasses(t *testing.T) { fmt.Println("FAIL") }
