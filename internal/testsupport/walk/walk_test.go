package walk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestWhatIsPrintedIsComparedLooselyButInOrder(t *testing.T) {
	output := "Lock \"a\": one leads, epoch 17\n\nNODE   STATE\none    leading   1s ago\ntwo    standby\n"
	for want, ok := range map[string]bool{
		"":                                    true,
		"Lock \"a\": one leads, epoch …\n":    true,
		"one leading …\ntwo standby":          true,
		"one leading":                         false, // the output line is longer
		"two standby\none …":                  false, // the lines are in the other order
		"… one leads …":                       true,
		"three …":                             false,
		"NODE STATE\n\none … ago\n":           true,
		"Lock \"a\": one leads, epoch 17 …\n": true,
	} {
		if err := Printed(want, output); (err == nil) != ok {
			t.Errorf("%q: %v", want, err)
		}
	}
}

func TestBlocksAreReadWithTheirKindAndHost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	page := "# T\n\n```sh host=one within=2s\na\n  b\n```\n```text\nx\n```\n- item\n\n  ```yaml\n  a: 1\n  ```\n```\nplain\n```\n"
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	blocks, err := Read(path)
	if err != nil || len(blocks) != 4 {
		t.Fatalf("%+v, %v", blocks, err)
	}
	if b := blocks[0]; b.Kind != "sh" || b.Host != "one" || b.Within != 2*time.Second || b.Text != "a\n  b\n" || b.Line != 3 {
		t.Errorf("%+v", b)
	}
	if blocks[1].Before != "```" || blocks[2].Text != "a: 1\n" || blocks[2].Before != "- item" || blocks[3].Kind != "" {
		t.Errorf("%+v", blocks)
	}
	for _, wrong := range []string{"```sh host=one\n", "```sh hots=one\n```\n", "```sh within=2\n```\n"} {
		if err := os.WriteFile(path, []byte(wrong), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), "page.md:1") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
