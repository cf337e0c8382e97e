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

// maxFile is the maximum size of the configuration file, in bytes. Even a file with a thousand jobs is much smaller.
const maxFile = 1 << 20

// Lookup returns the value with a name. For example, os.LookupEnv is a Lookup, and a set of flags can be one.
type Lookup func(name string) (string, bool)

// Input contains the sources of a configuration for Read.
type Input struct {
	Path   string // the path of the file; "" means no file
	Env    Lookup // the environment variables: BATON_… and the variables that the file names
	Flags  Lookup // the flags that were given, by name
	Checks Checks
}

// Read returns the complete and valid configuration in effect. Flags override the environment, the environment overrides the file, and the
// file overrides the defaults. Its error is Problems, or says why the file could not be read.
func Read(in Input) (Config, error) {
	c, found, err := in.read(Load)
	if err != nil {
		return Config{}, err
	}
	return c, firstOfEach(found).err()
}

// read returns the configuration with the problems of all steps. Its error says why the file could not be read.
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

// firstOfEach returns one problem for each value, and omits problems that only result from another problem. For example, if the file has an
// invalid ttl, the operator need not read that the default ttl does not fit the heartbeat.
func firstOfEach(found Problems) Problems {
	var out Problems
	bad, above := map[string]bool{}, map[string]bool{} // the values with problems, and the sections that contain them
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

// Load returns Default() with the settings of the file at path. If the file has unknown keys, values of the wrong type or duplicates, its
// error is Problems, each with its line. In that case the Config contains everything that could be read. Load does not validate the
// settings.
func Load(path string, env Lookup) (Config, error) {
	data, err := readAll(path)
	if err != nil {
		return Config{}, err
	}
	return parse(path, data, env)
}

// fromFile reports whether a file has set any value. It returns false if only flags and the environment have set values.
func (c Config) fromFile() bool {
	for _, at := range c.places {
		if at.line > 0 {
			return true
		}
	}
	return false
}

// readAll reads the file, but at most one byte more than the maximum size, which shows that the file is too large.
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

// parse decodes data, which is the content of the file with the given name.
func parse(name string, data []byte, env Lookup) (Config, error) {
	c := Default()
	c.places = map[string]position{}
	if len(data) > maxFile {
		return c, Problems{{Source: name, Message: "the file is larger than 1 MiB: is this baton's configuration?"}}
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return c, Problems{{Source: name, Message: "the file is in UTF-16; save it as UTF-8"}}
	}
	file, err := parseYAML(data)
	if excess, ok := errors.AsType[*shape.LimitError](err); ok {
		return c, Problems{{Source: name, Line: excess.Line, Column: excess.Column, Message: excess.Message}}
	}
	if err != nil {
		p := Problem{Source: name, Message: "not YAML: " + err.Error()}
		// The problem contains only the message and the position, because the error's own text quotes the source, and a line near the
		// mistake may contain a secret.
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
			d.fail(doc.Body, "", "the file has a second YAML document, but baton reads only one")
			break
		}
		d.decode(doc.Body, reflect.ValueOf(&c).Elem(), "", "")
	}
	return c, d.problems.err()
}

// parseYAML parses data. It recovers from a panic, so that a bug in the parser does not end the daemon at a reload.
func parseYAML(data []byte) (file *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("the parser cannot read the file; are quotes or brackets unbalanced?")
		}
	}()
	words, err := shape.Tokens(string(data))
	if err != nil {
		return nil, err
	}
	// Duplicates are allowed here, because decode reports them together with all other problems.
	return parser.Parse(words, 0, parser.AllowDuplicateMapKey())
}
