package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"baton/internal/config/shape"
	"baton/internal/text"
)

// maxFile is far more than a thousand jobs need; a larger file is no configuration.
const maxFile = 1 << 20

// Lookup finds a named value: os.LookupEnv is one, a set of flags another.
type Lookup func(name string) (string, bool)

// Input are the sources of a configuration for Read.
type Input struct {
	Path   string // of the file; "": there is none
	Env    Lookup // environment variables, BATON_… and those named in the file
	Flags  Lookup // flags that were given, by name
	Checks Checks
}

// Read returns the configuration in effect: flags over environment over file
// over defaults, complete and valid. Its error is Problems, or says why the file
// could not be read.
func Read(in Input) (Config, error) {
	c, found, err := in.read(Load)
	if err != nil {
		return Config{}, err
	}
	return c, firstOfEach(found).err()
}

// read collects the problems of all steps; its error says why the file could not be read.
func (in Input) read(load func(path string, env Lookup) (Config, error)) (Config, Problems, error) {
	c := Default()
	var found Problems
	for _, step := range []func() error{
		func() (err error) {
			if in.Path != "" {
				c, err = load(in.Path, in.Env)
			}
			return err
		},
		func() (err error) { c, err = Overlay(c, Environment(), in.Env); return err },
		func() (err error) { c, err = Overlay(c, Flags(), in.Flags); return err },
		func() error { c = c.WithDefaults(); return c.Validate(in.Checks) },
	} {
		err := step()
		if ps, ok := errors.AsType[Problems](err); ok {
			found = append(found, ps...)
		} else if err != nil {
			return Config{}, nil, err
		}
	}
	return c, found, nil
}

// firstOfEach keeps one problem for each value, and drops problems that only follow from another: if the file has a bad ttl, it is no
// news that the default ttl does not suit the heartbeat.
func firstOfEach(found Problems) Problems {
	var out Problems
	bad, above := map[string]bool{}, map[string]bool{} // values, and the sections that contain them
	for _, p := range found {
		echo := above[p.Path]
		for at := p.Path; at != ""; at = parent(at) {
			echo = echo || bad[at]
		}
		if echo {
			continue
		}
		out = append(out, p)
		bad[p.Path] = p.Path != ""
		for at := parent(p.Path); at != ""; at = parent(at) {
			above[at] = true
		}
	}
	return out
}

// Load reads the file at path over Default(). Its error is Problems if the file is there but has unknown keys, values of the wrong kind
// or duplicates, each with its line; the Config then holds everything that could be read. It does not validate.
func Load(path string, env Lookup) (Config, error) {
	data, err := readAll(path)
	if err != nil {
		return Config{}, err
	}
	return parse(path, data, env)
}

// fromFile reports whether a file set any value: false if only flags and environment did.
func (c Config) fromFile() bool {
	for _, at := range c.places {
		if at.line > 0 {
			return true
		}
	}
	return false
}

// readAll returns as much of the file as shows that it is too large.
func readAll(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the configuration: %w; to write one: baton config init %s", err, path)
	}
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	return text.WithoutMark(data), nil
}

// parse decodes data, which stands in the named file.
func parse(name string, data []byte, env Lookup) (Config, error) {
	c := Default()
	c.places = map[string]place{}
	if len(data) > maxFile {
		return c, Problems{{Source: name, Message: "larger than 1 MiB: is this baton's configuration?"}}
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return c, Problems{{Source: name, Message: "in UTF-16; save it as UTF-8"}}
	}
	file, err := parseYAML(data)
	if excess, ok := errors.AsType[*shape.Excess](err); ok {
		return c, Problems{{Source: name, Line: excess.Line, Column: excess.Column, Message: excess.Message}}
	}
	if err != nil {
		p := Problem{Source: name, Message: "not YAML: " + err.Error()}
		// Only the message and the position: the error's own text quotes the
		// source, and a line near the mistake may hold a secret.
		if syntax, ok := errors.AsType[yaml.Error](err); ok {
			p.Message = "not YAML: " + syntax.GetMessage()
			if tk := syntax.GetToken(); tk != nil && tk.Position != nil {
				p.Line, p.Column = tk.Position.Line, tk.Position.Column
				p.Message = cmp.Or(shape.Unquoted(string(data), p.Line, isKey), p.Message)
			}
		}
		return c, Problems{p}
	}
	d := &decoder{file: name, env: env, config: &c}
	body := 0
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if body++; body > 1 {
			d.fail(doc.Body, "", "a second YAML document; baton reads one")
			break
		}
		d.decode(doc.Body, reflect.ValueOf(&c).Elem(), "", "")
	}
	return c, d.problems.err()
}

// parseYAML keeps a bug of the parser from ending the daemon at a reload.
func parseYAML(data []byte) (file *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("the parser gives up; are quotes or brackets unbalanced?")
		}
	}()
	words, err := shape.Tokens(string(data))
	if err != nil {
		return nil, err
	}
	// Duplicates are allowed here because decode reports them with all the rest.
	return parser.Parse(words, 0, parser.AllowDuplicateMapKey())
}
