/**
 * Files and folders of a project that other programs run or obey later: shells, editors, git, package managers, agents. `files`
 * protects these names in every folder, and a command in the sandbox cannot write them in its working folder.
 */
export const runLater: readonly string[] = (
  '.hookloop .claude .claude.json .mcp.json .cursor .gitconfig .gitmodules .githooks .husky .envrc .vscode .idea .devcontainer ' +
  '.bash_aliases .bash_login .bash_logout .bash_profile .bashrc .profile .zlogin .zlogout .zprofile .zshenv .zshrc .ssh .netrc ' +
  '.npmrc .yarnrc .yarnrc.yml .cargo .pre-commit-config.yaml lefthook.yml .lefthook.yml .gdbinit .lldbinit .vimrc .exrc .mise.toml mise.toml'
).split(' ')
