// Packages that are not installed here have no types.
declare module '@ai-sdk/*'
declare module '@openrouter/ai-sdk-provider'
