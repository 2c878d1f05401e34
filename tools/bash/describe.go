package bash

import (
	"fmt"
	"strings"
	"time"

	"github.com/toold/toold/sandbox"
)

func (o Options) describe() string {
	lines := []string{
		"Runs a bash script and returns its output, and its exit code if it is not 0.",
		fmt.Sprintf("- Directory: it runs in %s unless cwd names another. Each call is a new shell: cd, variables, functions and jobs do not persist.", o.Workspace),
		"- Files: " + o.describeFiles(),
		"- Network: " + o.describeNetwork(),
		fmt.Sprintf("- Time: it is stopped after %s; timeout sets another limit, up to %s.", seconds(o.DefaultTimeout), seconds(o.MaxTimeout)),
	}
	if o.ReturnBytes > 0 {
		lines = append(lines, fmt.Sprintf("- Output: if it has more than %d bytes, the beginning and the end are returned; bash_output reads the rest.", o.ReturnBytes))
	}
	lines = append(lines,
		"- Servers and watchers: "+o.describeBackground(),
		"- Prompts: no one answers them, so use options such as --yes, -m and --no-pager.",
		"- Policy: each script is judged before it runs. It may be refused, or wait for a person's approval; the return says why and what to do instead. "+
			"Write the names of programs, files and hosts literally: what cannot be known before it runs may need approval.",
	)
	return strings.Join(lines, "\n")
}

func (o Options) describeFiles() string {
	switch {
	case o.Profile.Mode == sandbox.FullAccess:
		return "nothing confines it."
	case o.Profile.Mode != sandbox.WorkspaceWrite:
		return "it cannot change any."
	case o.Profile.Tier == sandbox.TierC:
		return "it can read and write the workspace" + others(o.Profile.Write) + ", and read the system's directories; temporary files go to $TMPDIR, which is removed with the call; /tmp cannot be written."
	}
	return "it can write in the workspace" + others(o.Profile.Write) + " and nowhere else; /tmp is private and removed with the call."
}

func others(dirs []string) string {
	if len(dirs) == 0 {
		return ""
	}
	return " and in " + strings.Join(dirs, ", ")
}

func (o Options) describeNetwork() string {
	switch {
	case o.Profile.Network:
		return "open."
	case len(o.Profile.Ports) > 0:
		return "only hosts that the policy allows can be contacted, by name; others are refused, or need a person's approval while the script waits."
	}
	return "off. Nothing can be downloaded, and no argument opens it: npm install, pip install and the like try for a minute and fail, unless all they need is cached. " +
		"Ask the user, who can set sandbox.network in toold's configuration."
}

func (o Options) describeBackground() string {
	if !o.Background {
		return "what it starts ends with it; nothing continues after the return."
	}
	text := fmt.Sprintf("what it starts ends with it, also with &. With background: true the call returns at once with an id, and the script continues for at most %s: "+
		"bash_output reads what it prints, bash_kill stops it, list_calls lists running calls.", seconds(o.MaxBackground))
	if o.Profile.Network || o.Profile.Tier == sandbox.TierC {
		return text
	}
	return text + " While it runs, later calls of the conversation reach its servers at localhost; nothing else does."
}

func seconds(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
