package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"baton/cmd/baton/internal/cmdline"
)

func TestATestNotificationSaysWhatEachTargetAnswers(t *testing.T) {
	c, bare, _ := nodeCLI(t)
	c.matches(c.run("notify"), cmdline.ExitUsage, `^$`, `^baton: baton notify needs test\n`)
	c.matches(c.run("notify", "tset"), cmdline.ExitUsage, `^$`, `unknown command "tset" for "baton notify"`)
	c.matches(c.run("notify", "test"), cmdline.ExitFailure, `^$`, `the configuration of this node has no notify`)

	events := make(chan string, 10)
	chat := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		events <- r.URL.Path + " " + string(body)
		if r.URL.Path == "/secret-bot" {
			_, _ = io.WriteString(w, `{"code":19002,"msg":"params error"}`) // the status code is 200
		}
	}))
	t.Cleanup(chat.Close)
	had, err := os.ReadFile("baton.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c.file("baton.yaml", string(had)+fmt.Sprintf(`
notify:
  - {name: ops, webhook: %[1]s/ops}
  - {name: chat, webhook: %[1]s/secret-bot, format: feishu}
`, chat.URL))
	c.matches(c.run("reload"), cmdline.ExitOK, `^reloaded\n$`, `^$`)

	for _, shell := range []*cli{c, {t, bare}} {
		c.matches(shell.run("notify", "test", "ops"), cmdline.ExitOK, `^ops: delivered\n$`, `^$`)
		if got := <-events; !strings.HasPrefix(got, "/ops {") || !strings.Contains(got, `"event":"test"`) || !strings.Contains(got, `node db1 can send notifications here`) {
			t.Errorf("posted %s", got)
		}
		c.matches(shell.run("notify", "test"), cmdline.ExitFailure,
			`^ops: delivered\nchat: not delivered: refused: code 19002: the request is malformed\n$`, `^baton: 1 of 2 targets did not accept the test notification\n$`)
		c.matches(shell.run("notify", "test", "pager"), cmdline.ExitFailure, `^$`, `there is no notify target "pager"; there is ops, chat`)
		c.matches(shell.run("notify", "test", "-o", "json"), cmdline.ExitFailure, `(?s)"tests": \[.*"target": "chat",\s+"ok": false,\s+"text": "refused: code 19002`, `1 of 2`)
		for range 4 {
			<-events
		}
	}
}
