package linear

import (
	"os"
	"path/filepath"
	"testing"

	"baton/test/linear/wire"
)

func TestHistoryOfAKilledProcessIsReadAsFarAsItWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "life.jsonl")
	h := follow()
	h.add(0, path)
	text := `{"kind":"call","at":10,"n":1,"op":"acquire","owner":"a"}
{"kind":"return","at":20,"n":1,"outcome":"won","epoch":3}
{"kind":"enter","at":30,"owner":"a","epoch":3}
{"kind":"act","at":40,"until":41,"owner":"a","epoch":3}
{"kind":"act","at":50,"until":51,"owner":"a","epoch":4}
{"kind":"call","at":60,"n":2,"op":"release","owner":"a"}
{"kind":"ret`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	h.end()
	if h.err != nil || len(h.operations) != 2 || len(h.terms) != 1 {
		t.Fatalf("read %d operations, %d terms, %v", len(h.operations), len(h.terms), h.err)
	}
	if want := (operation{op: wire.Acquire, owner: "a", outcome: wire.Won, epoch: 3, call: 10, ret: 20}); h.operations[0] != want {
		t.Errorf("read %+v", h.operations[0])
	}
	if o := h.operations[1]; o.outcome != "" || !o.matters() {
		t.Errorf("a release that was cut short is %+v", o)
	}
	if got := *h.terms[0]; got != (term{owner: "a", first: 41, last: 50, low: 3, high: 4}) {
		t.Errorf("read %+v", got)
	}
}
