package held

import (
	"slices"
	"strings"
	"testing"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	want := []Lock{{"plain", "0b2b-1", 1}, {"with space=and:all{%}", "owner", 1<<63 - 1}}
	words := []string{}
	for _, l := range want {
		words = append(words, l.String())
	}
	got, err := Read([]string{Locks + "=replaced=x:1", "A=b", Locks + "=" + strings.Join(words, " ")})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := Read([]string{"A=b"}); len(got) > 0 || err != nil {
		t.Errorf("of no variable: %v, %v", got, err)
	}
}

func TestWhatNobodyHasWrittenIsRefused(t *testing.T) {
	for _, word := range []string{"k", "k=o", "k=o:", "k=:1", "=o:1", "k=o:x", "%zz=o:1"} {
		if got, err := Read([]string{Locks + "=" + word}); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%q: %v, %v", word, got, err)
		}
	}
}
