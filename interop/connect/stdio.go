package connect

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/toold/toold/internal/edit"
)

// proveServer starts the MCP server that is configured at a path in the settings, and calls its tools.
func (p *site) proveServer(ctx context.Context, at edit.Path) error {
	command, err := p.serverCommand(at)
	if err != nil {
		return err
	}
	play := func(scripts ...call) (seen []string, out string, err error) {
		for _, c := range scripts {
			text, err := p.converse(ctx, command, c.Arguments)
			seen, out = append(seen, text), quoteOutput(out, err)
		}
		return seen, out, nil
	}
	return p.prove(play, func(script string) call { return call{"bash", fields{"command": script}} })
}

// serverCommand returns the command in the settings, with the flags for the daemon of the proof.
func (p *site) serverCommand(at edit.Path) (command []string, err error) {
	list, err := p.agent.files(p.setup)
	if err != nil {
		return nil, err
	}
	f := list[0]
	text, _, err := edit.Apply(f.Format, string(p.after[0]), f.Changes)
	if err != nil {
		return nil, err
	}
	var found struct {
		Command json.RawMessage
		Cmd     json.RawMessage // key of Goose
		Args    []string
	}
	if ok, err := edit.Value(f.Format, text, at, &found); !ok || err != nil {
		return nil, fmt.Errorf("the settings name no server: %v", err)
	}
	if found.Command == nil {
		found.Command = found.Cmd
	}
	if json.Unmarshal(found.Command, &command) == nil {
		return command, nil
	}
	var program string
	err = json.Unmarshal(found.Command, &program)
	return append([]string{program}, found.Args...), err
}

func (p *site) converse(ctx context.Context, command []string, arguments fields) (answer string, err error) {
	ctx, cancel := context.WithTimeout(ctx, runWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Env = p.workspace, p.environment(nil)
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut, cmd.Start()); err != nil {
		return "", fmt.Errorf("cannot start %s: %w", strings.Join(command, " "), err)
	}
	defer func() {
		in.Close() // ends the server
		err = errors.Join(err, cmd.Wait())
	}()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, largest)
	if _, err := ask(in, lines, 1, "initialize", fields{"protocolVersion": "2025-11-25", "capabilities": fields{}, "clientInfo": fields{"name": "toold connect", "version": "1"}}); err != nil {
		return "", err
	}
	if _, err := io.WriteString(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		return "", err
	}
	return ask(in, lines, 2, "tools/call", fields{"name": "bash", "arguments": arguments})
}

func ask(in io.Writer, lines *bufio.Scanner, id int, method string, params fields) (string, error) {
	text, err := json.Marshal(fields{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		return "", err
	}
	if _, err := in.Write(append(text, '\n')); err != nil {
		return "", err
	}
	for lines.Scan() {
		var head struct {
			ID     int
			Method string
		}
		if json.Unmarshal(lines.Bytes(), &head) == nil && head.ID == id && head.Method == "" {
			return lines.Text(), nil
		}
	}
	return "", errors.Join(errors.New("the server ended before it answered "+method), lines.Err())
}
