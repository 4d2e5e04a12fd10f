export type { FoundSkills } from './find-skills.ts'
export type { Skill, SkillDefinition } from './skill.ts'
export type { SkillsOptions } from './options.ts'
export { findSkills, getActiveSkills, skills } from './skills.ts'
