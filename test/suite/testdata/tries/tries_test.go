// Package tries has tests whose failures a test of the suite chooses.
package tries

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"baton/internal/testsupport/ranout"
)

// broken reports whether the test is to fail: BATON_TRIES names those that do.
func broken(t *testing.T) bool {
	return slices.Contains(strings.Fields(os.Getenv("BATON_TRIES")), t.Name())
}

// flaky fails the first time.
func flaky(t *testing.T) {
	if !broken(t) {
		return
	}
	tried := filepath.Join(os.Getenv("BATON_TRIED"), t.Name())
	if _, err := os.Stat(tried); err == nil {
		return
	}
	if err := os.WriteFile(tried, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ranout.Fatal(t, "rain", "waited a minute in vain for rain")
}

func TestFlaky1(t *testing.T) { flaky(t) }
func TestFlaky2(t *testing.T) { flaky(t) }
func TestFlaky3(t *testing.T) { flaky(t) }

func TestDry(t *testing.T) {
	if broken(t) {
		ranout.Fatal(t, "rain", "waited a minute in vain for rain")
	}
}

func TestAsserts(t *testing.T) {
	if broken(t) {
		t.Error("1 is not 2")
	}
}
