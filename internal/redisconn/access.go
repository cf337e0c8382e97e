package redisconn

import "slices"

// Access is what a part of baton sends to Redis: a preflight asks whether its user may.
type Access struct {
	Subject string // what findings are about; "": the server
	Places  []Place
	// Consequence of a refusal, and when it shows unless it is checked: "at the first flush".
	Consequence, Shows string
}

// Place is commands to the node that has a key.
type Place struct {
	Key string
	// Commands are those that are sent there, and ByType, if it is set, those that are sent
	// where the key holds that type, "" if that is not known.
	// Names says what words in them stand for.
	Commands []string
	ByType   func(holds string) []string
	Names    map[string]string
}

// Sent are the commands that are sent there if the key holds that type.
func (p Place) Sent(holds string) []string {
	if p.ByType == nil {
		return p.Commands
	}
	return slices.Concat(p.Commands, p.ByType(holds))
}
