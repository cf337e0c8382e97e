package alert

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"baton/internal/config"
	"baton/internal/notify"
)

// TestTheDocumentationOfNotificationsIsTrue checks that the examples in docs/notifications.md are valid without changes, and that the page
// is complete.
func TestTheDocumentationOfNotificationsIsTrue(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "notifications.md"))
	if err != nil {
		t.Fatal(err)
	}
	docs := string(b)
	block := func(kind string) string {
		found := regexp.MustCompile("(?s)```" + kind + "\n(.*?)```").FindStringSubmatch(docs)
		if found == nil {
			t.Fatalf("no %s", kind)
		}
		return found[1]
	}
	file := filepath.Join(t.TempDir(), "baton.yaml")
	if err := os.WriteFile(file, []byte(block("yaml")), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(file, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Notify) != 2 || c.Jobs[0].DeadMansSwitch == nil {
		t.Errorf("%+v", c.Notify)
	}

	decoder := json.NewDecoder(strings.NewReader(block("json")))
	decoder.DisallowUnknownFields()
	var e notify.Event
	if err := decoder.Decode(&e); err != nil || string(e.Kind) != config.NotifyFailed {
		t.Errorf("%+v, %v", e, err)
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[notify.Event]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !regexp.MustCompile("(?m)^\\|.*`" + name + "`.*\\|").MatchString(docs) {
			t.Errorf("the field %s is not documented", name)
		}
	}
	for _, event := range config.NotifyEvents() {
		if !strings.Contains(docs, "| `"+event+"` |") {
			t.Errorf("the event %s is not documented", event)
		}
	}
	for _, o := range notify.Outcomes() {
		if !strings.Contains(docs, "`"+string(o)+"`") {
			t.Errorf("the outcome %s is not documented", o)
		}
	}
}
