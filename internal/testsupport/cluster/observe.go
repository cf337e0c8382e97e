package cluster

import (
	"encoding/json"
	"os"
	"strings"
	"time"
)

// Line is one line of a node's log.
type Line struct {
	Time    time.Time // with milliseconds
	Level   string
	Message string
	fields  map[string]any
}

// Text returns a text field of the line, or "" if the line has no such text.
func (l Line) Text(field string) string {
	s, _ := l.fields[field].(string)
	return s
}

// Int returns a numeric field of the line, or 0 if the line has no such number.
func (l Line) Int(field string) int64 {
	f, _ := l.fields[field].(float64)
	return int64(f)
}

// Log returns the text that the node has written to standard error, also before a restart.
func (n *Node) Log() string { return n.logFrom(0) }

func (n *Node) logFrom(offset int64) string {
	text, err := os.ReadFile(n.log)
	if err != nil || int64(len(text)) < offset {
		return ""
	}
	return string(text[offset:])
}

// Lines returns the lines of the log that have the given message. If message is "", it returns all lines.
func (n *Node) Lines(message string) []Line {
	var found []Line
	for _, line := range parseLines(n.Log(), message) {
		if message == "" || line.Message == message {
			found = append(found, line)
		}
	}
	return found
}

// parseLines parses the lines of a log that may have the given message, and skips most lines with other messages. It also skips output that
// is not a line of the log, such as a panic or half a line.
func parseLines(text, message string) []Line {
	plain := !strings.ContainsAny(message, "\"\\\n") // the log contains the message without escapes
	var lines []Line
	for raw := range strings.Lines(text) {
		if plain && !strings.Contains(raw, message) {
			continue // decoding is slow, and tests read the log often
		}
		l := Line{}
		if json.Unmarshal([]byte(raw), &l.fields) != nil {
			continue
		}
		l.Level, l.Message = l.Text("level"), l.Text("message")
		l.Time, _ = time.Parse("2006-01-02T15:04:05.000Z0700", l.Text("time")) // zero if the line has no time
		lines = append(lines, l)
	}
	return lines
}

// Status is a node's answer at /api/v1/status. It contains only the fields that tests use.
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
	Events []Event `json:"events"` // the newest first
	Age    float64 `json:"age_seconds"`
	Error  string  `json:"error"`
}

// Event is an entry of the history of an election.
type Event struct {
	At     time.Time `json:"at"`
	Event  string    `json:"event"`
	Code   string    `json:"code"`
	NodeID string    `json:"node_id"`
	Epoch  int64     `json:"epoch"`
	Reason string    `json:"reason"`
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

// Status asks the node for its status. It returns false if the node does not answer.
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
