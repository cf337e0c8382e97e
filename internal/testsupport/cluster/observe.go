package cluster

import (
	"encoding/json"
	"os"
	"strings"
	"time"
)

// Line is one line of a node's log.
type Line struct {
	Time    time.Time // to the millisecond
	Level   string
	Message string
	fields  map[string]any
}

// Text is a field of the line; "" if it is not there or no text.
func (l Line) Text(field string) string {
	s, _ := l.fields[field].(string)
	return s
}

// Int is a numeric field of the line; 0 if it is not there or no number.
func (l Line) Int(field string) int64 {
	f, _ := l.fields[field].(float64)
	return int64(f)
}

// Log is everything that the node has written to standard error, restarts included.
func (n *Node) Log() string { return n.logFrom(0) }

func (n *Node) logFrom(offset int64) string {
	text, err := os.ReadFile(n.log)
	if err != nil || int64(len(text)) < offset {
		return ""
	}
	return string(text[offset:])
}

// Lines are the lines of the log with that message, or all for "".
func (n *Node) Lines(message string) []Line {
	var found []Line
	for _, line := range parseLines(n.Log(), message) {
		if message == "" || line.Message == message {
			found = append(found, line)
		}
	}
	return found
}

// parseLines takes the lines of a log that may have that message. It leaves out what is no line
// of the log: the output of a panic, half a line.
func parseLines(text, message string) []Line {
	plain := !strings.ContainsAny(message, "\"\\\n") // the log has it as it is
	var lines []Line
	for raw := range strings.Lines(text) {
		if plain && !strings.Contains(raw, message) {
			continue // decoding is slow, and tests ask often
		}
		l := Line{}
		if json.Unmarshal([]byte(raw), &l.fields) != nil {
			continue
		}
		l.Level, l.Message = l.Text("level"), l.Text("message")
		l.Time, _ = time.Parse("2006-01-02T15:04:05.000Z0700", l.Text("time")) // zero if it has none
		lines = append(lines, l)
	}
	return lines
}

// Status is what a node answers at /api/v1/status, as far as tests look at it.
type Status struct {
	NodeID string `json:"node_id"`
	Role   string `json:"role"` // leading, standby, connecting
	Leader *struct {
		NodeID    string  `json:"node_id"`
		Owner     string  `json:"owner"`
		Epoch     int64   `json:"epoch"`
		LeaseLeft float64 `json:"lease_left_seconds"`
	} `json:"leader"`
	Redis struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	} `json:"redis"`
	Vacancy string `json:"vacancy"`
	Paused  *struct {
		Reason string `json:"reason"`
	} `json:"paused"`
	Waiting string `json:"waiting"`
	Nodes   []struct {
		ID       string `json:"id"`
		State    string `json:"state"`
		Priority int    `json:"priority"`
		Observer bool   `json:"observer"`
		Aside    string `json:"aside"`
	} `json:"nodes"`
	Jobs []struct {
		Name    string `json:"name"`
		Running *Run   `json:"running"`
		LastRun *Run   `json:"last_run"`
		Backlog *int64 `json:"backlog"`
	} `json:"jobs"`
	Events []struct {
		At     time.Time `json:"at"`
		Event  string    `json:"event"`
		Code   string    `json:"code"`
		NodeID string    `json:"node_id"`
		Epoch  int64     `json:"epoch"`
		Reason string    `json:"reason"`
	} `json:"events"`
	Age   float64 `json:"age_seconds"`
	Error string  `json:"error"`
}

// Run is one execution of a job.
type Run struct {
	ID      string    `json:"run_id"`
	State   string    `json:"state"`
	Trigger string    `json:"trigger"`
	Slot    time.Time `json:"slot"`
	Started time.Time `json:"started"`
	Rows    int64     `json:"rows"`
	Dead    int64     `json:"dead"`
	Error   string    `json:"error"`
	NodeID  string    `json:"node_id"`
	Epoch   int64     `json:"epoch"`
}

// Status asks the node how everything stands; false if it does not answer.
func (n *Node) Status() (Status, bool) {
	resp, err := n.get("/api/v1/status")
	if err != nil {
		return Status{}, false
	}
	defer resp.Body.Close()
	var s Status
	err = json.NewDecoder(resp.Body).Decode(&s)
	return s, err == nil
}
