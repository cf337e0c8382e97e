package warden

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestMessagesArriveAsTheyWereSent(t *testing.T) {
	for _, o := range []Order{
		{},
		{Until: 1 << 60, Signal: 15, Stop: 7},
		{Until: 3, Setup: &Setup{Path: "/opt/a b\n\"é\xff", Argv: []string{"", "a b\n\"é\xff", strings.Repeat("\x01", 1<<20)}, Env: []string{"A=b c", ""}, Dir: "/tmp/a b", Grace: 5, Drain: 2, Leave: true, Group: 77, StopSignal: 2}},
		{Setup: &Setup{Path: "/bin/true", Argv: []string{"true"}, Env: []string{"A=b"}, Settings: everySetting()}},
		{Setup: &Setup{Path: "/bin/true", Argv: []string{"true"}, Env: []string{"A=b"}, Settings: Settings{User: &User{UID: -1, GID: 5}}}},
	} {
		var b bytes.Buffer
		if err := o.Write(&b); err != nil || strings.Count(b.String(), "\n") != 1 {
			t.Fatalf("%q, %v: want one line", b.String(), err)
		}
		if got := <-receive(&b, parseOrder); !reflect.DeepEqual(got, o) {
			t.Errorf("sent %+v, got %+v", o, got)
		}
	}
	for _, r := range []Report{{Pid: 7}, {Errno: 13, Step: StepUser}, {Result: &Result{Code: 3, Signal: 9, Stopped: true, Rest: 5}}} {
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
	const head = "1 2 3 4 5 6 7 15 "
	for _, text := range []string{"x\n", "1 2\n", "1 2 3 4\n", head + "1 0 path\n", head + "1 0 \"path\" \"dir\"\n", head + "2 0 \"path\" \"dir\" \"word\"\n",
		head + "0 0 \"path\" \"dir\" \"word\"\n", head + "-1 0 \"path\" \"dir\" \"word\"\n", head + "9223372036854775807 0 \"path\" \"dir\" \"word\"\n",
		head + "1 0 \"path\"x \"dir\" \"word\"\n", head + "1 -1 \"path\" \"dir\" \"word\"\n", head + "1 9223372036854775807 \"path\" \"dir\" \"word\"\n",
		head + "1 1 1 \"path\" \"dir\" \"word\"\n", head + "1 6 0 0 0 0 0 7 \"path\" \"dir\" \"word\"\n", head + "1 8 0 0 0 0 1 5 5 -1 \"path\" \"dir\" \"word\"\n",
		head + "1 8 0 0 0 0 1 5 5 9223372036854775807 \"path\" \"dir\" \"word\"\n", "{}\n"} {
		if o, ok := <-receive(strings.NewReader(text), parseOrder); ok {
			t.Errorf("%q was read as %+v", text, o)
		}
	}
}

func everySetting() Settings {
	mask, nice := 0o27, -5
	return Settings{
		Umask: &mask, Nice: &nice, Limits: []Limit{{Resource: 7, Max: 1024}, {Resource: 9, Max: 1<<64 - 1}},
		User: &User{UID: 65534, GID: 5, Groups: []int{5, 6, 7}},
	}
}

func TestALauncherThatWasKilledHasNotBegunTheCommand(t *testing.T) {
	for said, want := range map[string]string{
		".": "0 <nil>", "": "0 no child processes", "3 1": "3 operation not permitted", ".0 2": "0 no such file or directory", ".x": "0 no child processes",
	} {
		step, err := ReadOutcome(said)
		if got := fmt.Sprint(step, " ", err); got != want {
			t.Errorf("%q is %s, want %s", said, got, want)
		}
	}
}
