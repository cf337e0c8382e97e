package trace

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestVariablesAreThoseThatAreRead compares the variables that are read with Variables and with the table in the how-to page.
func TestVariablesAreThoseThatAreRead(t *testing.T) {
	var listed, read []string
	for _, v := range Variables() {
		listed = append(listed, v.Name)
	}
	env := with("OTEL_TRACES_SAMPLER", "traceidratio")
	FromEnvironment(func(name string) (string, bool) {
		if !strings.Contains(name, "_OTLP_TRACES_") {
			read = append(read, name)
		}
		v, ok := env[name]
		return v, ok
	})
	slices.Sort(listed)
	slices.Sort(read)
	if diff := cmp.Diff(listed, slices.Compact(read)); diff != "" {
		t.Errorf("listed (-) and read (+):\n%s", diff)
	}
	page, err := os.ReadFile("../../docs/how-to/traces.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## Variables\n")
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `OTEL.*?` \\|").FindAllString(table, -1) {
		documented = append(documented, regexp.MustCompile("OTEL_[A-Z_]+").FindAllString(row, -1)...)
	}
	slices.Sort(documented)
	if diff := cmp.Diff(listed, documented); diff != "" {
		t.Errorf("listed (-) and documented (+):\n%s", diff)
	}
}
