package notify

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Format is what a service wants posted, and how it says that it has taken it.
type Format struct {
	// Bearer: the token is sent as Authorization: Bearer. Else only encode uses it.
	Bearer bool
	// Encode makes the body of an event.
	Encode func(e Event, token string) ([]byte, error)
	// Judge says what an answer means to the delivery. Its error has no text of the body, which
	// may quote the address.
	Judge func(status int, body []byte) error
}

// formats are all that a webhook can post, by the names of the configuration.
var formats = map[string]Format{
	"json": {
		Bearer: true,
		Encode: func(e Event, _ string) ([]byte, error) { return json.Marshal(e) },
		Judge:  func(status int, _ []byte) error { return judge(status) },
	},
	"feishu": feishu,
}

// Formats are the names of the formats.
func Formats() []string {
	names := make([]string, 0, len(formats))
	for name := range formats {
		names = append(names, name)
	}
	return names
}

// judge says what a status means to the delivery.
func judge(status int) error {
	text := strings.TrimSpace(fmt.Sprintf("the answer is %d %s", status, http.StatusText(status)))
	switch {
	case status >= 200 && status < 300:
		return nil
	case status >= 300 && status < 400:
		return Refused("%s: it wants the request sent elsewhere; correct the address", text)
	case status == http.StatusRequestTimeout || status == http.StatusTooManyRequests, status >= 500:
		return errors.New(text)
	}
	return Refused("%s", text)
}
