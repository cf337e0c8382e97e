package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestCommandsAreCopied presses the buttons by mouse and by keyboard, on the host itself and by plain http from another host, where
// browsers give pages no clipboard.
func TestCommandsAreCopied(t *testing.T) {
	server, snap, _ := installation(t, asItIs)
	l := &lab{t: t, browser: startBrowser(t)}
	job := snap.Jobs[7].Name
	for where, url := range map[string]string{
		"the host": server.URL, "another host": strings.Replace(server.URL, "127.0.0.1", "db1.example", 1),
	} {
		b := l.openAt(t, url, "/")
		b.awaitText("dead letters") // the dead letters appear a moment later, and move the parts below them
		if secure := b.is("navigator.clipboard"); secure != (where == "the host") {
			t.Errorf("%s: the browser has a clipboard: %v", where, secure)
		}
		pasted := func(want string) {
			t.Helper()
			b.await("word that it was copied", `document.getElementById("said").textContent === "Copied: `+want+`"`)
			b.await("the mark", `[...document.querySelectorAll(".copy.done")].some((e) => e.dataset.copy === "`+want+`")`)
			if !b.is(`document.activeElement.dataset.copy === "` + want + `"`) {
				t.Errorf("%s: the focus has left the button", where)
			}
			b.eval(`document.body.append(Object.assign(document.createElement("textarea"), { id: "paper" }))`, nil)
			press := func(kind input.KeyType) *input.DispatchKeyEventParams {
				return input.DispatchKeyEvent(kind).WithKey("v").WithCode("KeyV").WithWindowsVirtualKeyCode('V').WithModifiers(input.ModifierCtrl)
			}
			b.do(chromedp.Focus("#paper", chromedp.ByQuery), press(input.KeyDown).WithCommands([]string{"paste"}), press(input.KeyUp))
			b.await("something", `document.getElementById("paper").value`)
			var got string
			if b.eval(`document.getElementById("paper").value`, &got); got != want {
				t.Errorf("%s: pasted %q, want %q", where, got, want)
			}
		}
		b.do(chromedp.Click(`.owner .copy`, chromedp.ByQuery, chromedp.NodeVisible))
		pasted(snap.Leader.Owner)
		b.visit("/jobs/" + job)
		for range 60 {
			if b.is(`document.activeElement.ariaLabel === "Copy baton job show ` + job + `"`) {
				break
			}
			b.do(chromedp.KeyEvent(kb.Tab))
		}
		b.do(chromedp.KeyEvent(kb.Enter))
		pasted("baton job show " + job)
	}
}

// TestTheFocusStaysWhileThePageChanges checks that the focus stays when problems above the focused element disappear and appear again.
func TestTheFocusStaysWhileThePageChanges(t *testing.T) {
	server, snap, calm := installation(t, asItIs)
	l := &lab{t: t, browser: startBrowser(t)}
	b := l.openAt(t, server.URL, "/")
	b.awaitText("dead letters")
	b.do(chromedp.Focus(`.owner .copy`, chromedp.ByQuery))
	b.eval(`document.querySelector("#find").value = "regi"`, nil)
	const problems = `document.querySelector(".problems b").textContent.startsWith("No node leads")`
	for _, now := range []bool{true, false, true} {
		calm.Store(now)
		b.await("the change", map[bool]string{true: "!", false: ""}[now]+problems)
		if !b.is(`document.activeElement.dataset.copy === "` + snap.Leader.Owner + `" && document.querySelector("#find").value === "regi"`) {
			t.Fatalf("nothing is wrong: %v: the focus is gone, or what was typed", now)
		}
	}
}
