package ranout

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
)

// told is a testing.TB that records its failure, so that the real test does not fail.
type told struct {
	testing.TB
	failed      bool
	attribute   string
	said        string
	goneFurther bool
}

func (f *told) Helper()                {}
func (f *told) Failed() bool           { return f.failed }
func (f *told) Attr(key, value string) { f.attribute += key + "=" + value }
func (f *told) Fatal(args ...any)      { f.said += fmt.Sprint(args...); runtime.Goexit() }

func (f *told) fatal() {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		Fatal(f, "rain\nin May", "waited in vain")
		f.goneFurther = true
	}()
	<-ended
}

func TestOnlyATestThatHasNotFailedYetIsMarked(t *testing.T) {
	first, failed, bubble := &told{}, &told{failed: true}, &told{}
	first.fatal()
	failed.fatal()
	synctest.Test(t, func(*testing.T) { bubble.fatal() })
	for _, c := range []struct {
		of        string
		got       *told
		attribute string
	}{
		{"a test that has not failed", first, Attribute + "=rain in May"},
		{"a test that failed before", failed, ""},
		{"a test in fake time", bubble, ""},
	} {
		if c.got.attribute != c.attribute || c.got.said != "waited in vain" || c.got.goneFurther {
			t.Errorf("%s: attribute %q, said %q, went on: %v", c.of, c.got.attribute, c.got.said, c.got.goneFurther)
		}
	}
}
