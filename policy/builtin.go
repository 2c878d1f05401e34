package policy

import "strings"

// builtinRules returns the rules that stand before every file. They deny or ask,
// never allow, and can be switched off by their id.
func builtinRules(o Options) (commands, paths []Rule) {
	return builtinCommands(), append(builtinPaths(), Rule{
		ID: "builtin:toold", Action: Deny, Paths: treesOf(o.Protected),
		Reason: "these are the daemon's own files; changing or reading them would undo its decisions",
	})
}

// treesOf makes patterns of directories and files and all that is below them.
func treesOf(paths []string) []string {
	var out []string
	for _, p := range paths {
		out = append(out, escapeMeta(p)+"/**")
	}
	return out
}

// Autorun names the files and directories of a project that other programs run or obey
// as soon as they find them. Those that begin with ".git/" are in a git directory,
// wherever git keeps one; ".git" is the file that leads to such a directory. The
// built-in rules are about them; a sandbox may protect them.
func Autorun() []string {
	names := []string{".git"}
	for _, name := range gitRuns() {
		names = append(names, ".git/"+name)
	}
	return append(append(names, obeyed()...), nested()...)
}

// nested are files that count in directories of their own.
func nested() []string {
	return []string{
		".cargo/config", ".cargo/config.toml", ".hg/hgrc", ".github/copilot-instructions.md", ".config/mise",
	}
}

// built are files that builds and CI obey, which run code of the project anyway: git and
// tools such as bundle and yarn write them, so only who names them is asked.
func built() []string {
	return []string{
		".github/workflows", ".github/actions", ".gitlab-ci.yml", ".circleci/config.yml", ".gitattributes", "rust-toolchain", "rust-toolchain.toml",
		".mvn", ".bazelrc", "bunfig.toml", ".bundle/config", ".yarn/releases", ".yarn/plugins",
	}
}

// gitKeeps are files and directories of git's that hold what a repository is.
func gitKeeps() string { return "{HEAD,refs,objects,packed-refs,index,logs,shallow}" }

func gitRuns() []string {
	return []string{"hooks", "config", "config.worktree", "commondir", "info/attributes"}
}

func obeyed() []string {
	return []string{
		".vscode", ".idea", ".husky", ".claude", ".codex", ".letta", ".cursor", ".devcontainer", ".toold",
		".envrc", ".mcp.json", ".gitmodules", ".gitconfig", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".pre-commit-config.yaml", ".ripgreprc",
		".devcontainer.json", ".zed", ".helix", ".run", ".exrc", ".nvim.lua", ".nvimrc", ".dir-locals.el", ".dir-locals-2.el",
		"CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "GEMINI.md", ".gemini", ".cursorrules", ".windsurf", ".windsurfrules", ".clinerules",
		".roo", ".roorules", ".kiro", ".amazonq", ".opencode", "opencode.json", "opencode.jsonc", ".aider.conf.yml",
		"lefthook.yml", "lefthook.yaml", ".lefthook.yml", ".lefthook.yaml", "lefthook-local.yml", "lefthook-local.yaml",
		"mise.toml", ".mise.toml", "mise.local.toml", ".mise.local.toml", ".mise", ".tool-versions",
		".gdbinit", ".lldbinit", ".pdbrc", ".irbrc", ".Rprofile", ".ackrc",
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".inputrc",
	}
}

// builtinPaths protects secrets, and files that make other programs run code.
func builtinPaths() []Rule {
	git := "{" + strings.Join(gitRuns(), ",") + "}/**"
	return []Rule{
		{
			ID: "builtin:secrets", Action: Deny, Ops: []Kind{Read, Write}, Reason: "it holds keys or passwords",
			Paths: []string{
				"~/.ssh/**", "~/.gnupg/**", "~/.aws/**", "~/.azure/**", "~/.config/gcloud/**", "~/.netrc", "~/.git-credentials",
				"~/.config/gh/hosts.yml", "~/.docker/config.json", "~/.kube/**", "~/.npmrc", "~/.pypirc", "~/.cargo/credentials*",
				"~/.password-store/**", "~/.local/share/keyrings/**", "**/id_rsa", "**/id_ed25519", "**/id_ecdsa", "**/id_dsa",
				"/etc/shadow*", "/etc/gshadow*", "/etc/sudoers", "/etc/sudoers.d/**", "/etc/ssh/ssh_host_*",
			},
		},
		{
			ID: "builtin:process-memory", Action: Deny, Ops: []Kind{Read, Write}, Reason: "it is an alias of another process's files or memory",
			Paths: []string{ // what is open, but not the list of it: it shows what a program has inherited
				"/proc/*/environ", "/proc/*/mem", "/proc/*/root/**", "/proc/*/cwd/**", "/proc/*/fd/*/**", "/proc/*/map_files/**", "/proc/*/maps",
				"/proc/*/task/*/{environ,mem,maps}", "/proc/*/task/*/{root,cwd}/**", "/proc/*/task/*/fd/*/**", "/proc/kcore", "/dev/mem", "/dev/kmem",
				"/dev/fd/*/**",
			},
		},
		{
			ID: "builtin:shell-startup", Action: Deny, Ops: []Kind{Write}, Reason: "programs run what is in it",
			Paths: []string{
				"~/.{bashrc,bash_profile,bash_login,bash_logout,profile,zshrc,zshenv,zprofile,zlogin,inputrc,vimrc,pam_environment}",
				"~/.gitconfig", "~/.config/{git,fish,nvim,systemd,autostart,environment.d}/**", "~/Library/LaunchAgents/**",
				"~/.local/bin/**", "~/bin/**", "~/.vim/**",
			},
		},
		{
			ID: "builtin:repository", Action: Deny, Ops: []Kind{Write}, Reason: "it holds the repository, with all its history",
			Paths: []string{"**/.git", "${workspace}/.git"},
		},
		{
			ID: "builtin:git-data", Action: Ask, Ops: []Kind{Write}, Reason: "it is part of the history of a repository, which git alone writes", NoMask: true,
			Paths: []string{"**/.git/" + gitKeeps() + "/**", "**/.git/{modules,worktrees}/**/" + gitKeeps() + "/**", "${workspace}/.git/" + gitKeeps() + "/**"},
		},
		{
			ID: "builtin:git-config", Action: Deny, Ops: []Kind{Write}, Reason: "git runs programs that are named there",
			Paths: []string{"**/.git/" + git, "**/.git/{modules,worktrees}/**/" + git, "${workspace}/.git/" + git},
		},
		{
			ID: "builtin:workspace-policy", Action: Deny, Ops: []Kind{Write}, Reason: "it holds the workspace's own policy, which calls must not loosen",
			Paths: []string{"${workspace}/.toold/**"},
		},
		{
			ID: "builtin:system", Action: Deny, Ops: []Kind{Write}, Reason: "it belongs to the operating system",
			Paths: []string{
				"/etc/**", "/usr/**", "/bin/**", "/sbin/**", "/lib/**", "/lib32/**", "/lib64/**", "/libx32/**", "/boot/**", "/sys/**", "/proc/**",
				"/dev/{sd,hd,vd,xvd,nvme,mmcblk,loop,dm-,md}*", "/dev/mapper/**", "/System/**", "/Library/**",
			},
		},
		{
			ID: "builtin:run-later", Action: Ask, Ops: []Kind{Write}, Reason: "other programs run or obey what is in it",
			Paths: []string{
				"**/{" + strings.Join(obeyed(), ",") + "}/**", "**/{" + strings.Join(nested(), ",") + "}/**",
			},
		},
		{
			ID: "builtin:build", Action: Ask, Ops: []Kind{Write}, Reason: "builds or CI run or obey what is in it", NoMask: true,
			Paths: []string{"**/{" + strings.Join(built(), ",") + "}/**"},
		},
	}
}

// builtinCommands denies what no agent should need.
func builtinCommands() []Rule {
	return []Rule{
		{
			ID: "builtin:machine", Action: Deny, Reason: "it changes the machine itself",
			Run: []string{
				"{mkfs,mkfs.ext2,mkfs.ext3,mkfs.ext4,mkfs.xfs,mkfs.btrfs,mkfs.vfat,mkswap,wipefs,fdisk,sfdisk,cfdisk,parted} **",
				"{shutdown,reboot,halt,poweroff,insmod,rmmod,modprobe,kexec} **", "dd of=/dev/{sd,hd,vd,xvd,nvme,mmcblk}* **",
			},
		},
		{
			ID: "builtin:wipe", Action: Deny, Reason: "it removes everything",
			Run: []string{
				"rm -r {/,/.,//,/bin,/boot,/dev,/etc,/home,/lib,/opt,/root,/sbin,/sys,/usr,/var} **",
				"{chmod,chown,chgrp} -R * {/,/bin,/boot,/dev,/etc,/home,/lib,/root,/usr,/var} **", "rm --no-preserve-root **",
			},
		},
	}
}
