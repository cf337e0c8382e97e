package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// chinese is how the name of a page in Chinese ends, beside the page that it translates.
const chinese = ".zh-CN.md"

// translated are the pages that a newcomer reads first, each of which has a twin.
func translated() []string {
	return []string{
		"README.md", "docs/tutorial.md", "docs/sources.md", "docs/explanation/comparison.md",
		"docs/how-to/adopt.md", "docs/how-to/from-set-nx.md", "docs/how-to/from-redisson.md", "docs/how-to/runbook.md",
	}
}

func twinOf(page string) string { return strings.TrimSuffix(page, ".md") + chinese }

func TestNewcomersPagesHaveATwin(t *testing.T) {
	t.Parallel()
	for _, page := range translated() {
		if _, err := os.Stat(filepath.Join(root, twinOf(page))); err != nil {
			t.Errorf("%s is not there in Chinese: %v", page, err)
		}
	}
}

var (
	codeBlock = regexp.MustCompile("(?ms)^ *```.*?^ *```\\s*?$")
	heading   = regexp.MustCompile(`(?m)^#+ `)
	tableRow  = regexp.MustCompile(`(?m)^ *\|`)
	listItem  = regexp.MustCompile(`(?m)^ *(?:-|\d+\.) `)
)

// A page and its twin have the same blocks of code, to the byte, and the same parts in the same order.
func TestTwinsHaveTheSameCodeAndParts(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		if !strings.HasSuffix(page, chinese) {
			continue
		}
		original := strings.TrimSuffix(page, chinese) + ".md"
		left, err := os.ReadFile(original)
		if err != nil {
			t.Errorf("%s translates no page: %v", page, err)
			continue
		}
		right, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		compareTwins(page, string(left), string(right), t.Errorf)
		for _, link := range []struct{ in, text, to string }{{original, string(left), page}, {page, string(right), original}} {
			if head := strings.Join(strings.SplitN(link.text, "\n", 5)[:4], "\n"); !strings.Contains(head, "]("+filepath.Base(link.to)+")") {
				t.Errorf("%s has no link to %s below its title", link.in, filepath.Base(link.to))
			}
		}
	}
}

func compareTwins(page, left, right string, report func(format string, args ...any)) {
	want, got := codeBlock.FindAllString(left, -1), codeBlock.FindAllString(right, -1)
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			report("%s: block %d differs:\n%s\n--- in English\n%s", page, i+1, got[i], want[i])
			return
		}
	}
	if len(want) != len(got) {
		report("%s has %d blocks of code, want %d", page, len(got), len(want))
	}
	left, right = codeBlock.ReplaceAllString(left, ""), codeBlock.ReplaceAllString(right, "")
	if want, got := heading.FindAllString(left, -1), heading.FindAllString(right, -1); !slices.Equal(want, got) {
		report("%s has the headings %q, want %q", page, got, want)
	}
	for what, pattern := range map[string]*regexp.Regexp{"rows of tables": tableRow, "items of lists": listItem} {
		if want, got := len(pattern.FindAllString(left, -1)), len(pattern.FindAllString(right, -1)); want != got {
			report("%s has %d %s, want %d", page, got, what, want)
		}
	}
}

// Each difference between two pages is an error of its own.
func TestADifferenceBetweenTwinsIsFound(t *testing.T) {
	t.Parallel()
	const page = "# A\n\ntext\n\n```sh\nls\n```\n\n## B\n\n| a |\n|---|\n| b |\n\n- c\n"
	for name, other := range map[string]string{
		"code":     strings.Replace(page, "ls", "ls -l", 1),
		"kind":     strings.Replace(page, "```sh", "```text", 1),
		"no block": strings.Replace(page, "```sh\nls\n```\n", "", 1),
		"heading":  strings.Replace(page, "## B", "### B", 1),
		"row":      strings.Replace(page, "| b |\n", "", 1),
		"item":     strings.Replace(page, "- c\n", "", 1),
		"same":     strings.Replace(page, "text", "文字", 1),
	} {
		found := 0
		compareTwins(name, page, other, func(string, ...any) { found++ })
		if want := name != "same"; (found > 0) != want {
			t.Errorf("%s: %d differences found", name, found)
		}
	}
}
