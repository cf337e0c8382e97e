package browser

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// All tests share one installation and one browser, because starting them takes longer than the tests.
func TestPage(t *testing.T) {
	l := newLab(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *lab)
	}{
		{"every page can be read by everybody", everyPageIsAccessible},
		{"without a token nothing secret is shown and no order is taken", nothingWithoutToken},
		{"orders by the mouse", func(t *testing.T, l *lab) { ordersAreCarriedOut(t, l) }},
		{"orders without scripts", func(t *testing.T, l *lab) { ordersAreCarriedOut(t, l, withoutScripts()) }},
		{"orders by the keyboard", ordersByKeyboard},
		{"the page stands below a path of a proxy", thePageStandsBelowAPath},
		{"a dead letter is replayed", deadLetterIsReplayed},
		{"what the page says is true while the leader is killed", truthWhileTheLeaderIsKilled},
		{"the page of a frozen leader does not lie", frozenLeaderDoesNotLie},
		{"a page whose stream is held back asks for itself", heldBackStreamIsNotWaitedFor},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, l) })
	}
}

func nothingWithoutToken(t *testing.T, l *lab) {
	b := l.open(t, l.Nodes[0], "/dead-letters")
	b.awaitLetter(l)
	b.awaitText("Only signed-in users see the records")
	if text := b.text(); strings.Contains(text, `"bad"`) {
		t.Errorf("the record is shown:\n%s", text)
	}
	b.click("Drop…")
	b.do(chromedp.WaitVisible("#token", chromedp.ByQuery))
	b.do(chromedp.SendKeys("#token", "this-is-not-the-token", chromedp.ByQuery), chromedp.Click("button.primary", chromedp.ByQuery))
	b.awaitText("This is not the token")
}

// ordersAreCarriedOut signs in, orders the leader to step down, runs a job, opens the job's output, pauses and resumes.
func ordersAreCarriedOut(t *testing.T, l *lab, first ...chromedp.Action) {
	leader := l.AwaitLeader(soon)
	b := l.open(t, l.Standbys()[0], "/", first...)
	b.awaitText(leader.ID + " leads")
	b.click("Step down…")
	b.signIn()
	b.awaitText(leader.ID + " ends its jobs in order")
	b.do(chromedp.SendKeys("#name", "alice", chromedp.ByQuery), chromedp.SendKeys("#why", "upgrade", chromedp.ByQuery))
	b.click("Step down")
	b.awaitText("Done")
	next := l.AwaitOther(leader, soon)
	if truth := l.truth(t); truth != next.ID {
		t.Errorf("%s leads by Redis, %s by itself", truth, next.ID)
	}
	b.visit("/timeline")
	b.awaitText("alice: upgrade")

	b.visit("/jobs/report")
	b.click("Run now…")
	b.click("Run now")
	b.await("the first line of the output", `document.querySelector("pre.output")?.textContent.includes("line 1 of <b>it</b> \u241b[31m")`)
	if b.is(`document.querySelector("pre.output").textContent.includes("line 4")`) {
		t.Log("the output was all there at once: nothing was seen to come")
	}
	b.await("the last line, without a click", `document.querySelector("pre.output")?.textContent.includes("line 4")`)
	b.await("the end of the run", `document.querySelector(".lead .chip")?.textContent === "succeeded"`)
	b.shoot("run")

	b.visit("/jobs/report")
	b.click("Pause…")
	b.do(chromedp.SetValue("#for", "1h", chromedp.ByQuery))
	b.click("Pause")
	b.awaitText("Done")
	b.click("Back")
	b.await("the pause", `document.querySelector(".facts .chip.warn")?.textContent === "paused"`)
	b.click("Resume…")
	b.click("Resume")
	b.awaitText("Done")
	b.visit("/jobs/report")
	b.await("the next run", `document.querySelector(".facts time[data-tick=next]")`)

	if len(first) > 0 {
		return // the rest would be the same again
	}
	b.visit("/")
	b.click("Pause everything…")
	b.click("Pause everything")
	b.awaitText("Done")
	b.visit("/")
	b.awaitText("Paused: no node leads")
	b.shoot("paused")
	if truth := l.truth(t); truth != "" {
		t.Errorf("the page says that no node leads, Redis that %s does", truth)
	}
	b.click("Resume…")
	b.click("Resume")
	b.awaitText("Done")
	b.visit("/")
	b.await("a leader", `/^n\d leads/.test(document.querySelector("h1").innerText)`)
}

// ordersByKeyboard moves over the page only with the Tab key, and runs a job.
func ordersByKeyboard(t *testing.T, l *lab) {
	b := l.open(t, l.AwaitLeader(soon), "/sign-in?next=/jobs/report")
	press := func(keys string) { b.do(chromedp.KeyEvent(keys)) }
	const focused = `(document.activeElement?.innerText || document.activeElement?.id || "")`
	tabTo := func(name string) {
		t.Helper()
		for range 60 {
			var now string
			b.eval(focused, &now)
			if strings.HasPrefix(now, name) {
				if !b.is(`getComputedStyle(document.activeElement).outlineStyle !== "none"`) {
					t.Errorf("%q has the focus, and nobody sees that", name)
				}
				return
			}
			press(kb.Tab)
		}
		t.Fatalf("the Tab key does not lead to %q:\n%s", name, b.text())
	}
	press(kb.Tab)
	if !b.is(`document.activeElement.className === "skip" && document.activeElement.getBoundingClientRect().top >= 0`) {
		t.Error("the first key does not offer to skip what stands above the content")
	}
	tabTo("token")
	b.do(input.InsertText(token))
	press(kb.Enter)
	b.awaitText("Next run")
	// The page may be updated just before the key arrives. Then the test presses the key again.
	for deadline := time.Now().Add(soon); !strings.Contains(b.text(), "Run report now?"); {
		if time.Now().After(deadline) {
			t.Fatalf("the key does not lead to the question:\n%s", b.text())
		}
		tabTo("Run now…")
		press(kb.Enter)
		b.await("the question, or another page without the key's element", `document.body.innerText.includes("Run report now?") || document.activeElement === document.body`)
	}
	tabTo("name")
	b.do(input.InsertText("bob"))
	tabTo("Run now")
	press(kb.Enter)
	b.await("the run's page", `location.pathname.includes("/runs/")`)
	b.await("who asked for it", `document.body.innerText.includes("bob")`)
}

func deadLetterIsReplayed(t *testing.T, l *lab) {
	b := l.open(t, l.Nodes[0], "/sign-in?next=/dead-letters")
	b.signIn()
	b.awaitText("bad is not wanted")
	b.awaitText(`"bad"`)
	b.shoot("dead letters")
	l.db.Exec(t, "DROP TRIGGER no_bad")
	b.click("Replay…")
	b.click("Replay")
	b.awaitText("Done")
	b.visit("/dead-letters")
	b.awaitText("There are none")
}

// truthWhileTheLeaderIsKilled compares the leaders on a standby's page with the leaders in Redis, until the page shows the successor. The
// page must show the same leaders in the same order.
func truthWhileTheLeaderIsKilled(t *testing.T, l *lab) {
	leader := l.AwaitLeader(soon)
	b := l.open(t, l.Standbys()[0], "/")
	b.awaitText(leader.ID + " leads")
	truths := []string{leader.ID} // the page may still show this leader
	look := func() {
		now, last := l.truth(t), truths[len(truths)-1]
		if last != "" && now != "" && now != last { // no node led in between
			truths = append(truths, "")
		}
		if now != last {
			truths = append(truths, now)
		}
	}
	leader.Kill()
	var says string
	for deadline := time.Now().Add(soon); ; time.Sleep(80 * time.Millisecond) {
		look()
		b.eval(`document.querySelector("h1").innerText`, &says)
		look() // the page may show a state that Redis did not have at the last reading
		says, _, _ = strings.Cut(says, " leads")
		if !strings.HasPrefix(says, "n") {
			says = ""
		}
		at := slices.Index(truths, says)
		if at < 0 {
			t.Fatalf("the page says that %q leads; since it said something else Redis has said %q", says, truths)
		}
		truths = truths[at:]
		if says != leader.ID && says != "" && len(truths) == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the page still says that %q leads", says)
		}
	}
	if b.is(`!document.getElementById("lost").hidden`) {
		t.Error("the page says that its node is not there")
	}
	b.shoot("after a kill")
	leader.Start()
}

// heldBackStreamIsNotWaitedFor opens the page through a proxy that forwards pages and holds the stream back. The page must be current
// nevertheless. A page that becomes visible again after a while must not look current before its node has answered.
func heldBackStreamIsNotWaitedFor(t *testing.T, l *lab) {
	silent := page.AddScriptToEvaluateOnNewDocument(`window.EventSource = class { static CLOSED = 2; readyState = 1; addEventListener() {} close() {} };`)
	leader := l.AwaitLeader(soon)
	b := l.open(t, leader, "/", chromedp.ActionFunc(func(ctx context.Context) error { _, err := silent.Do(ctx); return err }))
	b.await("the page to be asked for", `performance.getEntriesByType("resource").some((e) => e.initiatorType === "fetch") && document.getElementById("lost").hidden`)
	b.awaitText(leader.ID + " leads")
	if !b.is(`(() => {
		const now = Date.now;
		Date.now = () => now() + 60000;
		document.dispatchEvent(new Event("visibilitychange", { bubbles: true }));
		Date.now = now;
		return document.documentElement.classList.contains("stale");
	})()`) {
		t.Error("what was seen a minute ago passes for what is so now")
	}
	b.await("the page to be current", `!document.documentElement.classList.contains("stale")`)
}

func frozenLeaderDoesNotLie(t *testing.T, l *lab) {
	leader := l.AwaitLeader(soon)
	b := l.open(t, leader, "/")
	b.awaitText(leader.ID + " leads")
	b.await("a lease", `document.querySelector("progress").value > 0`)
	leader.Freeze()
	b.await("the lease to end", `document.querySelector("progress").value === 0`)
	b.await("word of the lost connection", `!document.getElementById("lost").hidden && document.getElementById("lost").innerText.startsWith("Connection to `+leader.ID+` lost")`)
	if !b.is(`/ led when last heard of/.test(document.querySelector("h1").innerText) && document.getElementById("lost").innerText.match(/ (UTC|[+-]\d\d:\d\d)\. /)`) {
		t.Errorf("the page does not say that it is of then:\n%s", b.text())
	}
	b.shoot("lost")
	l.Await(soon, "a successor", func() bool { n := l.truth(t); return n != "" && n != leader.ID })
	leader.Kill()
	leader.Start()
}
