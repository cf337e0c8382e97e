package walk

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Host is a machine on which the commands of a page run.
type Host interface {
	// Exec runs lines of bash, and stops at the first line that fails. It returns standard output and standard error as one text.
	Exec(script string) (output string, err error)
}

// pause is the time between two attempts to run a block of commands whose expected output may come later.
const pause = 200 * time.Millisecond

// Follow runs the blocks of commands on a page that name a host, in order. It fails the test at the first block whose result differs from
// the page.
func Follow(t testing.TB, page string, hosts map[string]Host) {
	t.Helper()
	blocks, err := Read(page)
	if err != nil {
		t.Fatal(err)
	}
	followed := 0
	for i, b := range blocks {
		if b.Host == "" {
			continue
		}
		host, ok := hosts[b.Host]
		if !ok {
			t.Fatalf("%s: there is no host %q here", b, b.Host)
		}
		want := ""
		if i+1 < len(blocks) && blocks[i+1].Kind == "text" && blocks[i+1].Before == "```" {
			want = blocks[i+1].Text
		}
		began := time.Now()
		if err := b.follow(host, want); err != nil {
			t.Fatalf("%s, on %s: %v", b, b.Host, err)
		}
		t.Logf("%s, on %s: %v", b, b.Host, time.Since(began).Round(time.Millisecond))
		followed++
	}
	if followed == 0 {
		t.Fatalf("%s has no block that names a host", page)
	}
}

func (b Block) follow(host Host, want string) error {
	for deadline := time.Now().Add(b.Within); ; time.Sleep(pause) {
		output, err := host.Exec(b.Text)
		if err == nil {
			err = Printed(want, output)
		}
		if err == nil {
			return nil
		}
		if !time.Now().Before(deadline) {
			return fmt.Errorf("%w\n--- commands\n%s--- printed\n%s", err, b.Text, output)
		}
	}
}

// Printed returns nil if the output contains the lines of the text want in the same order. Otherwise its error names the first line that is
// missing.
func Printed(want, output string) error {
	lines := strings.Split(output, "\n")
	for line := range strings.Lines(want) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		pattern := expression(line)
		for len(lines) > 0 && !pattern.MatchString(lines[0]) {
			lines = lines[1:]
		}
		if len(lines) == 0 {
			return fmt.Errorf("the page says that it prints %q, after the lines before that", strings.TrimSpace(line))
		}
		lines = lines[1:]
	}
	return nil
}

func expression(line string) *regexp.Regexp {
	var words []string
	for word := range strings.FieldsSeq(line) {
		words = append(words, strings.ReplaceAll(regexp.QuoteMeta(word), "…", ".*"))
	}
	text := strings.ReplaceAll(strings.Join(words, `\s+`), `\s+.*`, `.*`)
	return regexp.MustCompile(`^\s*` + strings.ReplaceAll(text, `.*\s+`, `.*\s*`) + `\s*$`)
}
