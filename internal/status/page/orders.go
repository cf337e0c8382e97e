package page

import (
	"cmp"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/status/auth"
	"baton/internal/status/state"
	"baton/internal/status/web"
)

// message is a page with one message.
type message struct {
	Tone          tone
	Heading, Text string
	Back, Run     string // links on the page
	Again         string // the address where the order can be confirmed again
}

// confirmation is the form that explains an order and asks the user to confirm it.
type confirmation struct {
	Heading, What, Button string
	Danger                bool
	Command               string // the equivalent command of the command line
	Fields                map[string]string
	Nodes                 []string // the successors to choose from
	Durations, Force      bool
	Back                  string
	Once                  string // identifies the form, so that a form that is sent twice is carried out once
}

// signInForm is the form that asks for the token.
type signInForm struct {
	Next, Error string
	Off         string // why the user cannot sign in here
}

// orderOf reads an order from the query of a confirmation page, or from the form on that page.
func orderOf(form url.Values) operate.Order {
	o := operate.Order{
		Kind: operate.Kind(form.Get("action")), Job: form.Get("job"), RunID: form.Get("run"),
		Letter: form.Get("letter"), To: form.Get("to"), Lock: form.Get("lock"),
		Force: form.Get("force") != "",
	}
	o.Changes, o.Deletes = acceptedCounts(form)
	if d, err := time.ParseDuration(form.Get("for")); err == nil && d > 0 {
		o.Until = time.Now().Add(d)
	}
	return o
}

// newConfirmation returns the confirmation form of an order. It returns false if there is no such order.
func newConfirmation(o operate.Order, s diagnose.Snapshot) (confirmation, bool) {
	c := confirmation{Fields: map[string]string{
		"action": string(o.Kind), "job": o.Job, "run": o.RunID, "letter": o.Letter, "standing": standing(o, s),
	}, Back: "/", Once: rand.Text()}
	if o.Job != "" {
		c.Back = jobURL(o.Job)
	}
	leader := "the leader"
	if s.Leader != nil && s.Leader.NodeID != "" {
		leader = s.Leader.NodeID
	}
	switch o.Kind {
	case operate.KindStepDown:
		c.Heading, c.Button, c.Command = "Step down?", "Step down", "baton stepdown"
		c.What = leader + " ends its jobs in order, and gives the lead to another node, within seconds. No slot is lost."
		for _, n := range s.Nodes {
			if s.CouldLead(n) {
				c.Nodes = append(c.Nodes, n.ID)
			}
		}
	case operate.KindPause:
		c.Heading, c.Button, c.Danger, c.Command = "Pause everything?", "Pause everything", true, "baton pause"
		c.What = leader + " steps down, and no node leads until somebody resumes. No job runs; changes wait in Redis, and slots pass."
	case operate.KindResume:
		c.Heading, c.Button, c.Command = "Resume?", "Resume", "baton resume"
		c.What = "Nodes may lead again: one takes the lead within moments, and jobs run as scheduled."
	case operate.KindPauseJob, operate.KindResumeJob:
		confirmPause(&c, o)
	case operate.KindRun:
		c.Heading, c.Button, c.Command, c.Force = "Run "+o.Job+" now?", "Run now", "baton job run "+o.Job, true
		c.What = leader + " runs " + o.Job + " once, outside of its schedule. If another run is in progress, this run waits for it, " +
			"or is refused, as the job’s configuration says."
	case operate.KindVerify:
		c.Heading, c.Button, c.Command = "Verify "+o.Job+"?", "Verify", "baton job verify "+o.Job
		c.What = leader + " reads all keys of " + o.Job + " and all rows of its table, beside its runs, and compares them. " +
			"It changes nothing."
	case operate.KindBackfill:
		c.Heading, c.Button, c.Command = "Backfill "+o.Job+"?", "Backfill", "baton job backfill "+o.Job
		c.What = leader + " marks all keys of " + o.Job + " that exist in Redis, and the next runs of the job flush them."
	case operate.KindAccept:
		confirmAcceptance(&c, o)
	case operate.KindCancel:
		c.Heading, c.Button, c.Danger, c.Command = "Cancel "+o.Job+"?", "Cancel the run", true, "baton job cancel "+o.Job
		c.What = "All runs of " + o.Job + " are ended, by force if need be. What a flush has not committed stays in " +
			"Redis. A pending retry is dropped."
		if o.RunID != "" {
			c.What, c.Back = "The run "+o.RunID+" is ended, by force if need be. What a flush has not committed "+
				"stays in Redis.", runURL(o.Job, o.RunID)
		}
	case operate.KindReplay:
		c.Heading, c.Button, c.Command, c.Back = "Replay the dead letter?", "Replay", "baton dead replay "+o.Letter, "/dead-letters"
		c.What = "The record " + o.Letter + " goes through its job’s flush again. If it fits now, it is written to " +
			"its table, and is no longer a dead letter."
	case operate.KindDrop:
		c.Heading, c.Button, c.Danger, c.Command, c.Back = "Drop the dead letter?", "Drop it for good", true,
			"baton dead drop "+o.Letter, "/dead-letters"
		c.What = "The record " + o.Letter + " is deleted. No copy of it exists: this cannot be undone."
	case operate.KindTestNotify:
		c.Heading, c.Button, c.Command = "Send a test notification?", "Send it", "baton notify test"
		c.What = "This node sends a test to every target of notify in its configuration, once, and shows what each answers."
	default:
		return c, false
	}
	return c, needsOf(o) == ""
}

func confirmPause(c *confirmation, o operate.Order) {
	what, after := "job "+o.Job, " "+o.Job
	if o.Job == "" {
		what, after = "all jobs", " --all"
	}
	if o.Kind == operate.KindResumeJob {
		c.Heading, c.Button, c.Command = "Resume "+what+"?", "Resume", "baton job resume"+after
		c.What = "The job runs again as scheduled. It catches up the missed slots that its configuration allows."
		return
	}
	c.Heading, c.Button, c.Durations, c.Command = "Pause "+what+"?", "Pause", true, "baton job pause"+after
	c.What = "No new run starts until you resume. A run in progress is not ended. Changes wait in Redis."
}

// needsOf returns a text that says what an order lacks, or "" if the order is complete.
func needsOf(o operate.Order) string {
	switch o.Kind {
	case operate.KindRun, operate.KindCancel, operate.KindVerify, operate.KindBackfill, operate.KindAccept:
		if o.Job == "" {
			return "the order names no job"
		}
	case operate.KindReplay, operate.KindDrop:
		if o.Letter == "" {
			return "the order names no dead letter"
		}
	}
	return ""
}

func (p *Pages) serveConfirm(w http.ResponseWriter, r *http.Request) {
	if p.Do == nil || !p.Auth.Enabled(r) {
		p.say(w, r, http.StatusForbidden, message{Tone: warn, Heading: "No orders are taken here",
			Text: "Set http.token_file in this node’s configuration, or give the order on its host, by baton.", Back: "/"})
		return
	}
	if auth.CallerOf(r.Context()).How == "" {
		redirect(w, r, "/sign-in?next="+url.QueryEscape(r.URL.RequestURI()))
		return
	}
	snap, _ := p.Watch.Snapshot(r.Context())
	o := orderOf(r.URL.Query())
	after, why := p.toAccept(r.Context(), &o)
	if why.Heading != "" {
		p.say(w, r, http.StatusOK, why)
		return
	}
	c, ok := newConfirmation(o, snap)
	c.What += after
	if id := r.URL.Query().Get("group"); id != "" && (o.Kind == operate.KindReplay || o.Kind == operate.KindDrop) {
		group, found, err := p.groupOf(r.Context(), id)
		if !found {
			p.say(w, r, http.StatusNotFound, noGroup(err))
			return
		}
		c, ok = confirmGroup(o.Kind, group), true
	}
	if !ok {
		p.say(w, r, http.StatusBadRequest, message{Tone: warn, Heading: "No such order", Text: "The address is not complete.", Back: "/"})
		return
	}
	p.send(w, r, "confirm", c.Heading, http.StatusOK, c)
}

// noGroup returns the message that a group of dead letters was not found, or that the dead letters could not be read.
func noGroup(err error) message {
	m := message{Tone: warn, Heading: "Not done", Text: "There are no such dead letters any more.", Back: "/dead-letters"}
	if err != nil {
		m.Text = "The dead letters could not be read, so nothing was done. " + sentence(err.Error())
	}
	return m
}

// serveDo carries out an order and redirects the browser to the outcome. If the user reloads that page, or sends the same form again, the
// order is not repeated.
func (p *Pages) serveDo(w http.ResponseWriter, r *http.Request) {
	err := p.Auth.MayOrder(r)
	_ = r.ParseForm() // invalid parts are dropped
	o := orderOf(r.PostForm)
	if err == nil {
		p.Watch.Outdate() // the confirmation must be compared with a fresh state
	}
	snap, _ := p.Watch.Snapshot(r.Context())
	c, ok := newConfirmation(o, snap)
	group := r.PostForm.Get("group") != "" && (o.Kind == operate.KindReplay || o.Kind == operate.KindDrop)
	ok = ok || group
	switch {
	case errors.Is(err, auth.ErrSignIn) && ok:
		p.say(w, r, http.StatusUnauthorized, message{Tone: warn, Heading: "Not done",
			Text:  "You are no longer signed in, so nothing was done. Sign in, and confirm it again.",
			Again: againURL(o, r.PostForm), Back: "/"})
		return
	case err != nil:
		why := web.Refused(err)
		p.say(w, r, why.Code, message{Tone: warn, Heading: "Not done", Text: sentence(why.Text), Back: "/"})
		return
	case !ok || p.Do == nil:
		p.say(w, r, http.StatusBadRequest, message{Tone: warn, Heading: "Not done", Text: "The form is not complete.", Back: "/"})
		return
	}
	web.AllowOrder(w)
	turn, first := p.submissions.claim(r.PostForm.Get("once"))
	if !first {
		select {
		case <-turn.done:
			redirect(w, r, turn.location)
		case <-r.Context().Done():
		}
		return
	}
	var m message
	var out operate.Outcome
	final := false
	if group {
		if o, c, ok, err = p.orderOfGroup(r, o.Kind); !ok {
			m = noGroup(err)
		}
	}
	if ok {
		m, out, final = p.carryOut(r, o, c, snap)
	}
	location := m.Run
	if location == "" || out.Queued {
		location = "/done?id=" + p.results.keep(m, out.RunID)
	} else {
		p.results.keep(m, out.RunID)
	}
	p.submissions.finish(turn, location, final)
	redirect(w, r, location)
}

// carryOut carries out an order, unless the state has changed since the confirmation, and returns a message with the outcome. The result
// final is true if sending the same form again must not repeat the order.
func (p *Pages) carryOut(r *http.Request, o operate.Order, c confirmation, snap diagnose.Snapshot) (
	m message, out operate.Outcome, final bool,
) {
	if confirmed := r.PostForm.Get("standing"); confirmed != "" && confirmed != c.Fields["standing"] {
		return message{
			Tone: warn, Heading: "Not done", Text: "Things have changed since you opened the form: " + byNow(o, snap) +
				". So nothing was done. See how things stand, and confirm it again.",
			Again: againURL(o, r.PostForm), Back: c.Back,
		}, out, false
	}
	o.By, o.Reason = state.Signed(r.PostForm.Get("name"), r.PostForm.Get("why"))
	o.By = cmp.Or(o.By, "somebody on the page")
	out, err := p.Do(r.Context(), o)
	if o.Kind == operate.KindReplay || o.Kind == operate.KindDrop {
		p.answers.forget()
	}
	m = message{Tone: good, Heading: "Done", Text: out.Text, Back: c.Back}
	var never *web.Refusal
	switch {
	case errors.As(err, &never), errors.Is(err, operate.ErrRefused), errors.Is(err, operate.ErrNoLeader),
		errors.Is(err, operate.ErrNotFound), errors.Is(err, operate.ErrInvalid):
		m.Tone, m.Heading, m.Text = warn, "Not done", sentence(err.Error())
		return m, out, false
	case err != nil: // a server did not answer, but may have carried out the order
		m.Tone, m.Heading, m.Text = bad, "It may have been done", "See how things stand before you try again. "+sentence(err.Error())
	case slices.ContainsFunc(out.Tests, func(t operate.Tested) bool { return !t.OK }):
		m.Tone, m.Heading, m.Text = warn, "Not delivered everywhere", sentence(out.Text)
	case out.RunID != "" && o.Kind == operate.KindRun:
		m.Run = runURL(o.Job, out.RunID)
	}
	return m, out, true
}

func (p *Pages) serveDone(w http.ResponseWriter, r *http.Request) {
	m, ok := p.results.get(r.URL.Query().Get("id"))
	if !ok {
		redirect(w, r, "/")
		return
	}
	p.say(w, r, http.StatusOK, m)
}

func (p *Pages) serveSignIn(w http.ResponseWriter, r *http.Request) {
	form := signInForm{Next: ownPath(r.FormValue("next"))}
	code := http.StatusOK
	if !p.Auth.Enabled(r) {
		form.Off = "This node takes no token here: it needs http.token_file, and https or a connection on the node’s own host."
		if p.Auth.Unencrypted(r) {
			form.Off = "The proxy before this node says (X-Forwarded-Proto) that the request came without encryption: " +
				"open the page by https."
		}
	} else if r.Method == http.MethodPost {
		err := p.Auth.SignIn(w, r, r.PostFormValue("token"))
		if err == nil {
			redirect(w, r, form.Next)
			return
		}
		why := web.Refused(err)
		code, form.Error = why.Code, sentence(why.Text)
	}
	p.send(w, r, "sign-in", "Sign in", code, form)
}

func (p *Pages) serveSignOut(w http.ResponseWriter, r *http.Request) {
	if err := p.Auth.MaySignOut(r); err != nil {
		why := web.Refused(err)
		p.say(w, r, why.Code, message{Tone: warn, Heading: "Not signed out", Text: sentence(why.Text), Back: "/"})
		return
	}
	p.Auth.SignOut(w, r)
	redirect(w, r, "/")
}

// ownPath returns the argument next if it is a path on this node, otherwise the path of the first page.
func ownPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") ||
		strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return next
}

// say sends a page that shows one message.
func (p *Pages) say(w http.ResponseWriter, r *http.Request, code int, m message) {
	p.send(w, r, "message", m.Heading, code, m)
}

// send sends a page that is made for one request only.
func (p *Pages) send(w http.ResponseWriter, r *http.Request, kind, title string, code int, view any) {
	snap, known := p.Watch.Snapshot(r.Context())
	d := p.newDocument(topic{path: r.URL.Path, see: p.Auth.MaySee(r), order: p.takesOrders(r)}, snap, known)
	d.Kind, d.Title, d.Code, d.View, d.Refresh, d.Alarm = kind, title, code, view, 0, ""
	p.write(w, r, d)
}

// results stores the outcomes of the latest orders, because the browser is redirected to a second page that shows the outcome.
type results struct {
	mu   sync.Mutex
	list []result
}

type result struct {
	id, run string
	message message
}

const resultsKept = 64

func (k *results) keep(m message, run string) (id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	id = rand.Text()
	k.list = append(k.list, result{id, run, m})
	k.list = k.list[max(len(k.list)-resultsKept, 0):]
	return id
}

func (k *results) get(id string) (message, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.list {
		if r.id == id {
			return r.message, true
		}
	}
	return message{}, false
}

// began reports whether a page of this node ordered the run. The run may not be in the state yet.
func (k *results) began(run string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.list {
		if run != "" && r.run == run {
			return true
		}
	}
	return false
}
