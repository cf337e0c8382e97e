package warden

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

func TestMessagesArriveAsTheyWereSent(t *testing.T) {
	for _, o := range []Order{
		{},
		{Until: 1 << 60, Signal: 15, Stop: 7},
		{Until: 3, Setup: &Setup{Path: "/opt/a b\n\"é\xff", Argv: []string{"", "a b\n\"é\xff", strings.Repeat("\x01", 1<<20)}, Env: []string{"A=b c", ""}, Dir: "/tmp/a b", Grace: 5, Drain: 2, Leave: true, Group: 77}},
	} {
		var b bytes.Buffer
		if err := o.Write(&b); err != nil || strings.Count(b.String(), "\n") != 1 {
			t.Fatalf("%q, %v: want one line", b.String(), err)
		}
		if got := <-receive(&b, parseOrder); !reflect.DeepEqual(got, o) {
			t.Errorf("sent %+v, got %+v", o, got)
		}
	}
	for _, r := range []Report{{Pid: 7}, {Errno: 13}, {Result: &Result{Code: 3, Signal: 9, Stopped: true, Rest: 5}}} {
		var b bytes.Buffer
		if err := r.write(&b); err != nil {
			t.Fatal(err)
		}
		if got := <-Reports(&b); !reflect.DeepEqual(got, r) {
			t.Errorf("sent %+v, got %+v", r, got)
		}
	}
}

func TestWhatIsNoMessageEndsTheTalk(t *testing.T) {
	for _, text := range []string{"x\n", "1 2\n", "1 2 3 4\n", "1 2 3 4 5 6 7 1 path\n", "1 2 3 4 5 6 7 1 \"path\" \"dir\"\n", "1 2 3 4 5 6 7 2 \"path\" \"dir\" \"word\"\n",
		"1 2 3 4 5 6 7 0 \"path\" \"dir\" \"word\"\n", "1 2 3 4 5 6 7 -1 \"path\" \"dir\" \"word\"\n", "1 2 3 4 5 6 7 9223372036854775807 \"path\" \"dir\" \"word\"\n", "1 2 3 4 5 6 7 1 \"path\"x \"dir\" \"word\"\n", "{}\n"} {
		if o, ok := <-receive(strings.NewReader(text), parseOrder); ok {
			t.Errorf("%q was read as %+v", text, o)
		}
	}
}
