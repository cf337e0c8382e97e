package follow

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"
)

// A server that has many changes to send sends them directly after its +CONTINUE.
func TestAReplyIsReadHoweverMuchComesRightBehindIt(t *testing.T) {
	for _, c := range []struct {
		sent, want string
		fails      bool
	}{
		{"+CONTINUE\r\n" + strings.Repeat("x", 2*longest), "CONTINUE", false},
		{"\n\n+CONTINUE\r\n" + strings.Repeat("x", 2*longest), "CONTINUE", false},
		{"+" + strings.Repeat("x", 2*longest), "", true},
	} {
		server, client := net.Pipe()
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			_, _ = server.Write([]byte(c.sent)) // the write fails if the client refuses the text
		}()
		got, err := newReader(client).reply(time.Minute)
		if got != c.want || errors.Is(err, ErrGarbled) != c.fails {
			t.Errorf("%.12q and %d bytes: %.20q, %v", c.sent, len(c.sent), got, err)
		}
		_ = client.Close()
		<-sent
		_ = server.Close()
	}
}
