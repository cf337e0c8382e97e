// Package service knows the services that a webhook can be: what each wants posted, how it signs,
// what its answer means, and how many messages it takes. A service is one file and a line of
// [formats].
package service

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"time"

	"baton/internal/text"
)

// formats are all that a webhook can post. The first is the default.
var formats = []Format{plain, slack, feishu, dingtalk, wecom}

// Format describes the requests that a service takes, and its answers.
type Format struct {
	// Name is its name in the configuration.
	Name string
	// Secret is the use of the text of token_file.
	Secret Use
	// Encode makes the body of a message. secret is empty unless Secret is [Signs].
	Encode func(m Message, secret string) ([]byte, error)
	// Sign adds the signature of a message to the query of the address. nil means no signature.
	Sign func(query url.Values, secret string)
	// Judge turns an answer into the result of the delivery. Its error has no text of the body,
	// which may quote the address.
	Judge func(a Answer) error
	// Pace is the limit of the service for one sender.
	Pace Pace
}

// Use is the use of the text of token_file by a service.
type Use int

// The uses.
const (
	Nothing Use = iota // no token_file: the address is the secret
	Bearer             // it is sent as Authorization: Bearer
	Signs              // it signs the message, and is not sent
)

// Message is an event to be posted.
type Message struct {
	JSON []byte // the event
	Text string // one sentence
}

// Answer is the HTTP answer of a service.
type Answer struct {
	Status     int
	RetryAfter string // the header of that name
	Body       []byte
}

// Pace is how many messages a service takes within a time. The zero Pace is no limit.
type Pace struct {
	Most   int
	Within time.Duration
}

// plain posts the event itself.
var plain = Format{
	Name:   "json",
	Secret: Bearer,
	Encode: func(m Message, _ string) ([]byte, error) { return m.JSON, nil },
	Judge:  judge,
}

// Find returns the format of that name; "" is the default.
func Find(name string) (f Format, known bool) {
	for _, f := range formats {
		if f.Name == name {
			return f, true
		}
	}
	return formats[0], name == ""
}

// Names are the names of the formats, the default first.
func Names() []string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.Name
	}
	return names
}

// said is the text of a message, cut to most bytes. calls is the mark that makes the service alert
// people: said breaks it up. A bot may demand "baton" as its keyword.
func said(m Message, most int, calls string) string {
	harmless := m.Text
	if calls != "" {
		harmless = strings.ReplaceAll(m.Text, calls, calls[:1]+" "+calls[1:])
	}
	return text.Clip("baton: "+harmless, most)
}

// chat is the text message of DingTalk and WeCom.
type chat struct {
	Type string `json:"msgtype"`
	Text struct {
		Content string `json:"content"`
	} `json:"text"`
}

func encodeChat(content string) ([]byte, error) {
	m := chat{Type: "text"}
	m.Text.Content = content
	return json.Marshal(m)
}

// retryAfter reads the header of that name: seconds, the only form that these services send. 0: it says nothing.
func retryAfter(header string) time.Duration {
	n, err := strconv.Atoi(strings.TrimSpace(header))
	if err != nil || n <= 0 {
		return 0
	}
	return min(time.Duration(n)*time.Second, longestWait)
}
