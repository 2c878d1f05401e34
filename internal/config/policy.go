package config

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/toold/toold/policy"
)

// careful is the built-in policy.
//
//go:embed careful.yaml
var careful []byte

// starters are templates for the user's policy.
//
//go:embed careful.yaml strict.yaml go.yaml node.yaml python.yaml
var starters embed.FS

// StarterPolicy returns the text of "careful" (the built-in policy), "strict", "go", "node" or "python".
func StarterPolicy(name string) ([]byte, error) {
	if err := oneOf("policy", []byte(name), []string{"careful", "strict", "go", "node", "python"}); err != nil {
		return nil, err
	}
	return starters.ReadFile(name + ".yaml")
}

// AdministratorPolicy is the path of the policy for all users. Only root may own and write it.
const AdministratorPolicy = "/etc/toold/policy.yaml"

// WorkspacePolicy is the path, in a workspace, of its policy, which can only tighten.
const WorkspacePolicy = ".toold/policy.yaml"

// LoadPolicy reads and compiles the user's policy at path ("" = the built-in policy), the administrator's and the
// workspace's. Faults in a file have type *Error.
func LoadPolicy(path string, o policy.Options) (*policy.Policy, error) {
	user, err := readUser(path)
	if user.decoder == nil {
		return nil, err
	}
	p, failed := thisSystem().compile(user, o) // also of a file with faults: all are reported at once
	if faults := append(flat(err), flat(failed)...); len(faults) > 0 {
		slices.SortStableFunc(faults, byPlace)
		return nil, errors.Join(faults...)
	}
	return p, nil
}

func flat(err error) (all []error) {
	joined, ok := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case !ok:
		return []error{err}
	}
	for _, one := range joined.Unwrap() {
		all = append(all, flat(one)...)
	}
	return all
}

// byPlace orders the faults of a file by their lines, and leaves others where they are.
func byPlace(a, b error) int {
	x, isFault := errors.AsType[*Error](a)
	y, isOther := errors.AsType[*Error](b)
	if !isFault || !isOther || x.File != y.File {
		return 0
	}
	return cmp.Or(cmp.Compare(x.Line, y.Line), cmp.Compare(x.Column, y.Column))
}

// ReadPolicy reads the policy file at path ("" = the built-in policy) without compiling it.
func ReadPolicy(path string) (policy.File, error) {
	user, err := readUser(path)
	return user.file, err
}

type layer struct {
	file        policy.File
	decoder     *decoder // has the positions; nil if unknown
	clientRules []clientRule
	clients     []layer // files that named lists
}

// system describes the machine: the path and required owner of the administrator's policy, and which directories
// ignore case.
type system struct {
	administrator string
	root          uint32
	folds         func(dir string) bool
}

func thisSystem() system { return system{AdministratorPolicy, 0, foldsCase} }

func (s system) compile(user layer, o policy.Options) (*policy.Policy, error) {
	layers := []*layer{&user}
	administrator, err := s.administratorPolicy()
	if err != nil {
		return nil, err
	}
	if administrator != nil {
		layers = append(layers, administrator)
		o.Administrator = &administrator.file
	}
	workspace, err := workspacePolicy(o.Workspace)
	if err != nil {
		return nil, err
	}
	if workspace != nil {
		layers = append(layers, workspace)
	}
	for _, l := range slices.Clone(layers) {
		l.file.FoldCase = l.file.FoldCase || l.file.AutoCase && s.folds(o.Workspace)
		for i := range l.file.Clients {
			own := &l.file.Clients[i].File
			own.FoldCase = own.FoldCase || own.AutoCase && s.folds(o.Workspace)
			o.Protected = append(slices.Clip(o.Protected), own.Name)
		}
		for i := range l.clients {
			layers = append(layers, &l.clients[i])
		}
	}
	var further []policy.File
	if workspace != nil {
		further = append(further, workspace.file)
	}
	p, err := policy.Compile(o, user.file, further...)
	if err != nil {
		return nil, withPositions(err, layers)
	}
	return p, nil
}

func readUser(path string) (layer, error) {
	name, src := "careful.yaml (built-in)", careful
	if path != "" {
		text, err := readRegular(os.OpenFile, path)
		if err != nil {
			return layer{}, fmt.Errorf("cannot read the policy: %w", err)
		}
		name, src = path, text
	}
	l, err := parsePolicy(name, src, policy.Ask, caseAuto)
	return l, errors.Join(err, l.readClients(os.OpenFile))
}

// administratorPolicy reads the administrator's policy, or returns nil if there is none. Only its owner may be able
// to change it.
func (s system) administratorPolicy() (*layer, error) {
	open := func(path string, flag int, perm fs.FileMode) (*os.File, error) {
		f, err := os.OpenFile(path, flag, perm)
		if err != nil {
			return nil, err
		}
		info, err := f.Stat()
		if err == nil {
			err = s.checkOwner(path, info)
		}
		if err != nil {
			f.Close()
			return nil, err
		}
		return f, nil
	}
	dir, err := os.Stat(filepath.Dir(s.administrator))
	var src []byte
	if err == nil {
		src, err = readRegular(open, s.administrator)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = s.checkOwner(filepath.Dir(s.administrator), dir)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot use the administrator's policy: %w", err)
	}
	l, err := parsePolicy(s.administrator, src, policy.Allow, "")
	if err != nil {
		return nil, err
	}
	return &l, l.readClients(open)
}

func (s system) checkOwner(path string, info fs.FileInfo) error {
	stat, known := info.Sys().(*syscall.Stat_t)
	if !known || stat.Uid != s.root {
		return fmt.Errorf("%s must belong to the user with the id %d: use chown", path, s.root)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s can be written by others (mode %v): use chmod go-w", path, info.Mode().Perm())
	}
	return nil
}

func workspacePolicy(workspace string) (*layer, error) {
	if workspace == "" {
		return nil, nil
	}
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return nil, fmt.Errorf("cannot open the workspace: %w", err)
	}
	defer root.Close()
	src, err := readRegular(root.OpenFile, WorkspacePolicy)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the workspace's policy: %w", err)
	}
	l, err := parsePolicy(WorkspacePolicy, src, policy.Allow, "")
	if err == nil && len(l.clientRules) > 0 {
		err = l.decoder.errorAt(l.clientRules[0].At, "clients: the workspace's policy holds for every client; only the user's and the administrator's tell them apart")
	}
	return &l, err
}

const maxPolicy = 8 << 20

// readRegular reads a regular file up to a limit: calls could put a pipe or a device into the workspace.
func readRegular(open func(string, int, fs.FileMode) (*os.File, error), path string) ([]byte, error) {
	f, err := open(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	src, err := io.ReadAll(io.LimitReader(f, maxPolicy+1))
	if len(src) > maxPolicy {
		return nil, fmt.Errorf("%s has more than %d MiB", path, maxPolicy>>20)
	}
	return src, err
}

// withPositions adds file positions to the faults of policy.Compile.
func withPositions(err error, layers []*layer) error {
	faults := flat(err)
	for i, err := range faults {
		if fault, ok := errors.AsType[*policy.Fault](err); ok {
			for _, l := range layers {
				if l.file.Name == fault.File && l.decoder != nil {
					faults[i] = l.decoder.locate(fault)
				}
			}
		}
	}
	return errors.Join(faults...)
}

// PlacePolicyFaults adds positions to the faults of the policy file at path ("" = the built-in policy).
func PlacePolicyFaults(path string, found []*policy.Fault) ([]*Error, error) {
	l, err := readUser(path)
	if err != nil {
		return nil, err
	}
	var out []*Error
	for _, f := range found {
		out = append(out, l.decoder.locate(f))
	}
	return out, nil
}

func (d *decoder) locate(f *policy.Fault) *Error {
	at, scope, message := position{max(f.Line, 1), 1}, f.Key, f.Key+": "+f.Problem
	if f.Rule != "" {
		scope = f.Rule + "." // of a rule without an id of its own
		message = fmt.Sprintf("rule %q: %s", f.Rule, f.Problem)
		for _, t := range d.texts {
			if rule, ok := strings.CutSuffix(t.path, ".id"); ok && t.text == f.Rule {
				at, scope = t.at, rule+"."
				break // a later one with this id has the name of its place
			}
		}
	}
	for _, t := range d.texts {
		inScope := strings.HasPrefix(t.path, scope) && !strings.HasSuffix(t.path, ".id")
		if f.Value != "" && t.text == f.Value && inScope {
			at = t.at
			break
		}
	}
	return d.errorAt(at, "%s", message)
}
